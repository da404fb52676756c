#include "study/measures.h"

#include <algorithm>
#include <cmath>

#include "analysis/attention.h"
#include "analysis/fixed_point.h"
#include "analysis/phases.h"
#include "analysis/pruning.h"
#include "core/error.h"
#include "sgd/limit.h"
#include "study/measure_info.h"
#include "theory/bayes.h"

namespace headflow {
namespace {

constexpr int kDraws = 16;  // of fresh samples for the loss at the end

/// The end of training.
struct End {
  Point point;
  double loss = 0, error = 0;
  ErrorKind error_kind = ErrorKind::refinement;
  double gradient_norm = 0, time = 0;
  double index = std::nan("");  ///< of the Hessian; NaN: not looked at
  bool converged = false;
  bool diverged = false;  ///< what is at the end is unknown, then
};

struct Stopped {};

/// What several measures need is computed once.
class Task {
 public:
  Task(const Config& config, const Context& context)
      : config_(config), problem_(config.problem), context_(context) {}

  void measure(const std::string& name);
  std::vector<Quantity> take() {
    if (trained_) {
      add_whole("diverged", "1 if training diverged: what follows from its end is unknown", {}, {},
                {diverged_ ? 1.0 : 0.0});
    }
    return std::move(out_);
  }

 private:
  static std::size_t size(Eigen::Index n) { return static_cast<std::size_t>(n); }
  std::size_t H() const { return static_cast<std::size_t>(problem_.H()); }
  std::size_t F() const { return static_cast<std::size_t>(problem_.F()); }

  void add(const std::string& name, const std::string& long_name, double value) {
    out_.push_back({name, long_name, {}, {}, {value}});
  }
  void add_whole(const std::string& name, const std::string& long_name,
                 std::vector<std::string> dimensions, std::vector<std::size_t> shape,
                 std::vector<double> values) {
    add(name, long_name, std::move(dimensions), std::move(shape), std::move(values));
    out_.back().whole = true;
  }
  void add(const std::string& name, const std::string& long_name,
           std::vector<std::string> dimensions, std::vector<std::size_t> shape,
           std::vector<double> values) {
    out_.push_back({name, long_name, std::move(dimensions), std::move(shape), std::move(values)});
  }
  /// Each block of the activation, at one point or along a run.
  void add_blocks(const std::vector<const Blocks*>& points, const std::string& suffix,
                  const std::string& where) {
    for (const BlockLayout::Entry& e : problem_.layout()->entries()) {
      std::vector<std::string> dimensions = e.info.dimensions();
      std::vector<std::size_t> shape(e.shape.begin(), e.shape.end());
      if (!suffix.empty()) {
        dimensions.insert(dimensions.begin(), "time");
        shape.insert(shape.begin(), points.size());
      }
      std::vector<double> values;
      for (const Blocks* one : points) {
        const double* from = one->data() + e.offset;
        values.insert(values.end(), from, from + e.size);
      }
      add(e.info.name + suffix, e.info.meaning + where, dimensions, shape, values);
    }
  }
  static std::vector<double> flat(const Matrix& matrix) {
    return {matrix.data(), matrix.data() + matrix.size()};
  }

  const End& end() {
    if (!end_) end_ = config_.end.search == EndSearch::flow ? end_of_flow() : end_by_newton();
    if (!context_.goes_on()) throw Stopped();
    trained_ = true;
    diverged_ = diverged_ || end_->diverged;
    return *end_;
  }

  const Trajectory& trajectory() {
    if (!trajectory_) {
      const Point start = flow_start(config_, problem_);
      const auto engine = make_flow_engine(problem_, config_.run, config_.flow, start, context_);
      trajectory_.emplace();
      follow(*engine, start, config_.flow, *trajectory_);
    }
    return *trajectory_;
  }

  /// integrate_flow, remembering whether it diverged.
  void follow(Engine& engine, const Point& start, const FlowOptions& flow, Trajectory& run) {
    const FlowSummary summary = integrate_flow(engine, start, flow, run, context_);
    if (!context_.goes_on()) throw Stopped();
    trained_ = true;
    diverged_ = diverged_ || summary.outcome == FlowOutcome::diverged;
  }

  End end_by_newton() const;
  End end_of_flow() const;
  void measure_one(const std::string& name);
  void end_measure();
  void flow_measure();
  void sgd_measure();
  std::vector<SgdState> sgd_starts(const Problem& problem) const;
  void phases_measure();
  void pruning_measure();
  void attention_measure();

  const Config& config_;
  Problem problem_;
  const Context& context_;
  std::optional<End> end_;
  std::optional<Trajectory> trajectory_;
  bool trained_ = false, diverged_ = false;
  std::vector<Quantity> out_;
};

End Task::end_by_newton() const {
  FixedPointOptions options;
  options.gradient = config_.end.gradient;
  options.rtol = config_.flow.rtol;
  options.atol = config_.flow.atol;
  const FixedPoint found =
      find_fixed_point(problem_, config_.run, flow_start(config_, problem_), options, context_);
  return {found.point,
          found.loss,
          found.loss_error,
          found.error_kind,
          found.gradient_norm,
          found.time,
          found.index ? *found.index : std::nan(""),
          found.converged,
          false};
}

End Task::end_of_flow() const {
  const Point start = flow_start(config_, problem_);
  FlowOptions flow = config_.flow;
  flow.gradient_tolerance = config_.end.gradient;
  flow.outputs = 1;
  flow.spacing = Spacing::linear;
  const auto engine = make_flow_engine(problem_, config_.run, flow, start, context_);
  Trajectory run;
  const FlowSummary summary = integrate_flow(*engine, start, flow, run, context_);
  End out{run.point.back(),
          run.loss.back(),
          run.loss_error.back(),
          engine->error_kind(),
          run.gradient_norm.back(),
          summary.final_time,
          std::nan(""),
          run.gradient_norm.back() < config_.end.gradient,
          summary.outcome == FlowOutcome::diverged};
  if (out.diverged) {
    out.point = start;  // a point of that shape
    return out;
  }
  if (!engine->sampled()) return out;
  // The heads have adapted to their samples, whose loss is too low: it is measured on others.
  double sum = 0, squares = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    Evaluation e;
    engine->refresh(kFreshDraws + draw);
    engine->evaluate(out.point, {.loss_error = false}, e);
    sum += e.loss;
    squares += e.loss * e.loss;
  }
  out.loss = sum / kDraws;
  out.error = std::sqrt(std::max(squares / kDraws - out.loss * out.loss, 0.0) / (kDraws - 1));
  out.error_kind = ErrorKind::fresh_samples;
  return out;
}

void Task::end_measure() {
  const End& found = end();
  add("loss", "loss at the end of training", found.loss);
  add("loss_error", fmt::format("error of the loss: {}", to_string(found.error_kind)), found.error);
  add("gradient_norm", "norm of the gradient at the end", found.gradient_norm);
  add_whole("converged", "1 if the gradient is below end.gradient", {}, {},
            {found.converged ? 1.0 : 0.0});
  add_whole("index", "negative eigenvalues of the Hessian at the end", {}, {}, {found.index});
  add("end_time", "training time of the flow", found.time);
  const Point point = problem_.frame().leave(found.point);
  add("m", "overlaps of the heads with the hidden directions at the end",
      {"attention_head", "feature"}, {H(), F()}, flat(point.m));
  add_blocks({&point.blocks}, "", " at the end");
  add("R_norm", "norm of a head's part orthogonal to the hidden directions at the end",
      {"attention_head"}, {H()}, flat(point.R.rowwise().norm()));
}

std::vector<SgdState> Task::sgd_starts(const Problem& problem) const {
  if (config_.sgd.init == SgdInit::law) {
    return Sgd::starts(problem, config_.sgd, config_.run.seed);
  }
  const Point point = config_.point.make(problem_);
  return {state_with(problem_.p(), problem_.frame().leave(point))};
}

void Task::sgd_measure() {
  const Problem problem = problem_.with_overlaps({});  // they are part of the start
  const auto starts = sgd_starts(problem);
  Sgd sgd(problem, config_.sgd, config_.run.seed, starts, context_);
  while (!sgd.finished()) {
    if (!sgd.advance() || !context_.goes_on()) throw Stopped();
  }
  trained_ = true;
  diverged_ = diverged_ || sgd.diverged();
  const std::vector<SgdRecord>& records = sgd.recorded().front();
  std::vector<std::int64_t> steps = sgd.output_steps();
  steps.resize(records.size());
  std::vector<double> times, batch, batch_error, m, q;
  const auto append = [](std::vector<double>& to, const Matrix& from) {
    to.insert(to.end(), from.data(), from.data() + from.size());
  };
  for (std::size_t i = 0; i < records.size(); ++i) {
    times.push_back(config_.sgd.lr * static_cast<double>(steps[i]));
    batch.push_back(records[i].loss.mean);
    batch_error.push_back(records[i].loss.error);
    append(m, records[i].state.m());
    append(q, records[i].state.q());
  }
  const std::size_t n = records.size();
  add("tau", "training time", {"time"}, {n}, times);
  add("sgd_loss_t", "loss of a batch of SGD", {"time"}, {n}, batch);
  add("sgd_loss_t_error", "its standard error", {"time"}, {n}, batch_error);
  add("sgd_m_t", "overlaps with the hidden directions, SGD", {"time", "attention_head", "feature"},
      {n, H(), F()}, m);
  add("sgd_q_t", "overlaps of heads, SGD", {"time", "attention_head", "other_head"}, {n, H(), H()},
      q);
  for (const LimitKind kind : checked_limits(config_.compare.theory)) {
    const std::string name(to_string(kind));
    const Limit limit = make_limit(problem, config_.run, config_.sgd, records.front().state, steps,
                                   {kind, config_.compare.rtol, config_.compare.atol}, context_);
    Trajectory run;
    follow(*limit.engine, limit.start, limit.flow, run);
    m.clear();
    q.clear();
    for (const Point& point : run.point) {
      append(m, limit.problem.frame().leave(point).m);
      append(q, point.q());
    }
    const std::size_t k = run.time.size();
    const std::string end = kind == LimitKind::flow ? "" : "_" + name;
    add("loss_t" + end, "loss along the " + name + " from the same start", {"time"}, {k}, run.loss);
    add("loss_t_error" + end, "its error", {"time"}, {k}, run.loss_error);
    add("m_t" + end, "overlaps with the hidden directions, " + name,
        {"time", "attention_head", "feature"}, {k, H(), F()}, m);
    add("q_t" + end, "overlaps of heads, " + name, {"time", "attention_head", "other_head"},
        {k, H(), H()}, q);
  }
}

void Task::flow_measure() {
  const Trajectory& run = trajectory();
  const std::size_t n = run.time.size();
  std::vector<double> m, r;
  std::vector<const Blocks*> blocks;
  for (const Point& point : run.point) {
    const Point user = problem_.frame().leave(point);
    m.insert(m.end(), user.m.data(), user.m.data() + user.m.size());
    blocks.push_back(&point.blocks);
    const Vector norms = point.R.rowwise().norm();
    r.insert(r.end(), norms.begin(), norms.end());
  }
  add("tau", "training time", {"time"}, {n}, run.time);
  add("loss_t", "loss along the flow", {"time"}, {n}, run.loss);
  add("loss_t_error", "its error", {"time"}, {n}, run.loss_error);
  add("m_t", "overlaps along the flow", {"time", "attention_head", "feature"}, {n, H(), F()}, m);
  add_blocks(blocks, "_t", " along the flow");
  add("R_norm_t", "norms of the orthogonal parts along the flow", {"time", "attention_head"},
      {n, H()}, r);
}

void Task::phases_measure() {
  const Trajectory& run = trajectory();
  const Matrix directions = principal_directions(problem_);
  std::vector<double> variance;
  for (const auto& s : directions.colwise()) {
    variance.push_back(s.dot(problem_.prior().covariance() * s));
  }
  add("variance", "eigenvalues of Cov theta", {"direction"}, {F()}, variance);
  add("directions", "its eigenvectors", {"direction", "feature"}, {F(), F()},
      flat(directions.transpose()));
  add("flow_gradient", "norm of the gradient at the end of the flow", run.gradient_norm.back());
  add("tau_u", "time at which the heads' mean along E theta is half its largest",
      mean_growth_time(run, problem_.prior().mean()));
  add("tau_s",
      "time at which the heads' spread along an eigenvector of Cov theta is half its largest",
      {"direction"}, {F()}, specialisation_times(run, directions));
  std::vector<double> crossings, signs;
  for (const auto& s : directions.colwise()) crossings.push_back(excursions(run, s, 0.3));
  for (const std::vector<int>& of_head : sign_patterns(run.point.back(), directions)) {
    signs.insert(signs.end(), of_head.begin(), of_head.end());
  }
  add_whole("excursions", "heads that change sides along an eigenvector (beyond 0.3)",
            {"direction"}, {F()}, crossings);
  add_whole("signs", "sign of a head along an eigenvector at the end of the flow",
            {"attention_head", "direction"}, {H(), F()}, signs);
}

void Task::pruning_measure() {
  const std::vector<PruningStep> steps = prune(problem_, end().point, config_.run, context_);
  std::vector<double> loss, error, removed;
  for (const PruningStep& step : steps) {
    loss.push_back(step.loss);
    error.push_back(step.error);
    removed.push_back(step.removed + 1);
  }
  add("pruned_loss", "loss after greedily removing 0, 1, ... heads", {"removed"}, {H()}, loss);
  add("pruned_loss_error", "its error", {"removed"}, {H()}, error);
  add_whole("removed_head", "number of the head that is removed; 0: none", {"removed"}, {H()},
            removed);
}

void Task::attention_measure() {
  const auto L = static_cast<std::size_t>(problem_.L());
  std::vector<double> maps, relevant;
  for (const AttentionMap& map :
       attention_maps(problem_, end().point, kAttentionSequences, config_.run.seed)) {
    maps.insert(maps.end(), map.attention.data(), map.attention.data() + map.attention.size());
    relevant.push_back(map.relevant + 1);
  }
  add("attention", "attention of each head on each token", {"sequence", "attention_head", "token"},
      {kAttentionSequences, H(), L}, maps);
  add_whole("relevant", "number of the relevant token", {"sequence"}, {kAttentionSequences},
            relevant);
}

void Task::measure(const std::string& name) {
  const std::size_t first = out_.size();
  measure_one(name);
  // Of training that diverged there are the numbers on the way, and no end.
  if (!diverged_ || name == "bayes" || name == "flow" || name == "sgd") return;
  for (std::size_t i = first; i < out_.size(); ++i) {
    if (out_[i].name != "converged") std::ranges::fill(out_[i].values, std::nan(""));
  }
}

void Task::measure_one(const std::string& name) {
  if (name == "end") {
    end_measure();
  } else if (name == "bayes") {
    const BayesRisk risk = bayes_risk(
        problem_, {.tolerance = std::max(config_.run.tolerance, 1e-9), .seed = config_.run.seed},
        context_);
    add("bayes", "Bayes risk", risk.risk);
    add("bayes_error", fmt::format("error of the risk: {}", to_string(risk.error_kind)),
        risk.error);
  } else if (name == "flow") {
    flow_measure();
  } else if (name == "sgd") {
    sgd_measure();
  } else if (name == "phases") {
    phases_measure();
  } else if (name == "pruning") {
    pruning_measure();
  } else if (name == "similarity") {
    const Matrix q = end().point.q();
    const Vector norm = q.diagonal().cwiseSqrt();
    const Matrix cosine = (q.array() / (norm * norm.transpose()).array()).matrix();
    add("similarity", "cosine of the angle between two heads at the end",
        {"attention_head", "other_head"}, {H(), H()}, flat(cosine));
  } else if (name == "attention") {
    attention_measure();
  }
}

}  // namespace

std::optional<std::vector<Quantity>> measure_task(const Config& config,
                                                  const std::vector<std::string>& measures,
                                                  const Context& context) {
  try {
    Task task(config, context);
    for (const std::string& name : measures) task.measure(name);
    return task.take();
  } catch (const Stopped&) {
    return std::nullopt;
  } catch (const Interrupted&) {
    return std::nullopt;
  }
}

}  // namespace headflow
