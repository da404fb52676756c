#include "study/measures.h"

#include <algorithm>
#include <cmath>

#include "analysis/attention.h"
#include "analysis/fixed_point.h"
#include "analysis/phases.h"
#include "analysis/pruning.h"
#include "core/error.h"
#include "sgd/limit.h"
#include "sgd/runs.h"
#include "study/keys.h"
#include "study/overlaps.h"
#include "study/settings.h"
#include "study/sweep_plan.h"
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

/// What several measures need is computed once, for all lists of them.
class Task {
 public:
  Task(const Config& config, const Context& context)
      : config_(config), problem_(config.problem), context_(context) {}

  Dataset measure(const Measures& measures) {
    out_ = {"headflow-measures", "headflow: measures", {}, {}, {}};
    trained_ = diverged_ = false;
    for (const Measure one : measures) measure(one);
    if (trained_) {
      out_.add("diverged", "1 if training diverged: what follows from its end is unknown",
               diverged_ ? 1.0 : 0.0)
          .whole_numbers();
    }
    out_.provenance = {config_text(config_, swept_sections()), "", config_.run.seed};
    return std::move(out_);
  }

 private:
  Dimension heads() const { return {"attention_head", static_cast<std::size_t>(problem_.H())}; }
  Dimension others() const { return {"other_head", heads().size}; }
  Dimension features() const { return {"feature", static_cast<std::size_t>(problem_.F())}; }
  Dimension directions() const { return {"direction", features().size}; }

  const End& end() {
    if (!end_) end_ = config_.end.search == EndSearch::flow ? end_of_flow() : end_by_newton();
    training_was(end_->diverged);
    return *end_;
  }

  const Trajectory& trajectory() {
    if (!trajectory_) {
      const Point start = flow_start(config_, problem_);
      const auto engine = make_flow_engine(problem_, config_.run, config_.flow, start, context_);
      Trajectory run;
      trajectory_kind_ = engine->error_kind();
      trajectory_diverged_ = follow(*engine, start, config_.flow, run);
      trajectory_ = std::move(run);
    }
    training_was(trajectory_diverged_);
    return *trajectory_;
  }

  /// integrate_flow; true if it diverged.
  bool follow(Engine& engine, const Point& start, const FlowOptions& flow, Trajectory& run) const {
    const FlowSummary summary = integrate_flow(engine, start, flow, run, context_);
    if (!context_.goes_on()) throw Stopped();
    return summary.outcome == FlowOutcome::diverged;
  }

  void training_was(bool diverged) {
    if (!context_.goes_on()) throw Stopped();
    trained_ = true;
    diverged_ = diverged_ || diverged;
  }

  End end_by_newton() const;
  End end_of_flow() const;
  static void look_with_fresh_samples(Engine& engine, End& out);
  void measure(Measure measure);
  void measure_one(Measure measure);
  void end_measure();
  void flow_measure();
  void sgd_measure();
  void phases_measure();
  void bayes_measure();
  void pruning_measure();
  void similarity_measure();
  void attention_measure();

  const Config& config_;
  Problem problem_;
  const Context& context_;
  std::optional<End> end_;
  std::optional<Trajectory> trajectory_;
  ErrorKind trajectory_kind_ = ErrorKind::refinement;
  bool trajectory_diverged_ = false;
  // Of the list that is measured:
  bool trained_ = false, diverged_ = false;
  Dataset out_;
};

End Task::end_by_newton() const {
  const FixedPoint found = find_fixed_point(problem_, config_.run, flow_start(config_, problem_),
                                            fixed_point_options(config_), context_);
  End out{found.point,
          found.loss,
          found.loss_error,
          found.error_kind,
          found.gradient_norm,
          found.time,
          found.index ? *found.index : std::nan(""),
          found.converged,
          false};
  EngineOptions same = config_.run;
  same.engine = from_name<EngineName>("run.engine", found.engine);
  if (found.error_kind != ErrorKind::refinement) {
    look_with_fresh_samples(*make_engine(problem_, same, {&out.point, false}, context_), out);
  }
  return out;
}

/// The heads have adapted to their samples, whose loss is too low: it is measured on others.
void Task::look_with_fresh_samples(Engine& engine, End& out) {
  double sum = 0, squares = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    Evaluation e;
    engine.refresh(kFreshDraws + draw);
    engine.evaluate(out.point, {.loss_error = false}, e);
    sum += e.loss;
    squares += e.loss * e.loss;
  }
  out.loss = sum / kDraws;
  out.error = std::sqrt(std::max(squares / kDraws - out.loss * out.loss, 0.0) / (kDraws - 1));
  out.error_kind = ErrorKind::fresh_samples;
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
  if (engine->sampled()) look_with_fresh_samples(*engine, out);
  return out;
}

void Task::end_measure() {
  const End& found = end();
  out_.add("loss", "loss at the end of training", found.loss)
      .with_errors({found.error}, found.error_kind);
  if (config_.loss.excess > 0) {  // of no end it is unknown (`measure`)
    add_excess_risk(out_, found.diverged
                              ? ExcessRisk{}
                              : noted_excess_risk(config_, problem_, found.point, context_));
  }
  out_.add("gradient_norm", "norm of the gradient at the end", found.gradient_norm);
  out_.add("converged", "1 if the gradient is below end.gradient", found.converged ? 1.0 : 0.0)
      .whole_numbers();
  out_.add("index", "negative eigenvalues of the Hessian at the end", found.index).whole_numbers();
  out_.add("end_time", "training time of the flow", found.time);
  add_point(out_, problem_, {{Part::m, Part::blocks, Part::R_norm}, "", "", " at the end"},
            found.point);
}

void Task::sgd_measure() {
  const Problem problem = problem_.with_overlaps({});  // they are part of the start
  const SgdRuns runs =
      run_sgd(problem, config_.sgd, config_.run, sgd_starts(config_, problem), context_);
  if (runs.outcome == SgdOutcome::interrupted) throw Stopped();
  training_was(runs.outcome == SgdOutcome::diverged);
  const std::vector<SgdRecord>& records = runs.recorded.front();
  const Dimension time{"time", records.size()};
  std::vector<double> times, batch, batch_error;
  for (std::size_t i = 0; i < records.size(); ++i) {
    times.push_back(config_.sgd.lr * static_cast<double>(runs.output_steps[i]));
    batch.push_back(records[i].loss.mean);
    batch_error.push_back(records[i].loss.error);
  }
  out_.add("tau", "training time", {time}, times);
  out_.add("sgd_loss_t", "loss of a batch of SGD", {time}, batch)
      .with_errors(batch_error, ErrorKind::replicas);
  add_overlaps(out_, problem, {time}, {{Part::m, Part::q}, "sgd_", "_t", ", of SGD"},
               [&](std::size_t i) { return overlaps_of(records[i].state); });
  for (const LimitKind kind : checked_limits(config_.compare.theory)) {
    const std::string name(to_string(kind));
    const Limit limit =
        make_limit(problem, config_.run, config_.sgd, records.front().state, runs.output_steps,
                   {kind, config_.compare.rtol, config_.compare.atol}, context_);
    Trajectory run;
    training_was(follow(*limit.engine, limit.start, limit.flow, run));
    const Dimension along{"time", run.time.size()};
    const std::string end = "_t" + (kind == LimitKind::flow ? "" : "_" + name);
    Quantity& loss = out_.add("loss" + end, "loss along the " + name + " from the same start",
                              {along}, run.loss);
    loss.with_errors(run.loss_error, limit.engine->error_kind());
    if (kind != LimitKind::flow) loss.error_name = "loss_t_error_" + name;
    add_points(out_, limit.problem, along, {{Part::m, Part::q}, "", end, ", " + name}, run.point);
  }
}

void Task::flow_measure() {
  const Trajectory& run = trajectory();
  const Dimension time{"time", run.time.size()};
  out_.add("tau", "training time", {time}, run.time);
  out_.add("loss_t", "loss along the flow", {time}, run.loss)
      .with_errors(run.loss_error, trajectory_kind_);
  add_points(out_, problem_, time,
             {{Part::m, Part::blocks, Part::R_norm}, "", "_t", " along the flow"}, run.point);
}

void Task::phases_measure() {
  const Trajectory& run = trajectory();
  const Matrix vectors = principal_directions(problem_);
  std::vector<double> variance, crossings, signs;
  for (const auto& s : vectors.colwise()) {
    variance.push_back(s.dot(problem_.prior().covariance() * s));
    crossings.push_back(excursions(run, s, 0.3));
  }
  for (const std::vector<int>& of_head : sign_patterns(run.point.back(), vectors)) {
    signs.insert(signs.end(), of_head.begin(), of_head.end());
  }
  out_.add("variance", "eigenvalues of Cov theta", {directions()}, variance);
  out_.add("directions", "its eigenvectors", {directions(), features()},
           flattened(vectors.transpose()));
  out_.add("flow_gradient", "norm of the gradient at the end of the flow",
           run.gradient_norm.back());
  out_.add("tau_u", "time at which the heads' mean along E theta is half its largest",
           mean_growth_time(run, problem_.prior().mean()));
  out_.add("tau_s",
           "time at which the heads' spread along an eigenvector of Cov theta is half its largest",
           {directions()}, specialisation_times(run, vectors));
  out_.add("excursions", "heads that change sides along an eigenvector (beyond 0.3)",
           {directions()}, crossings)
      .whole_numbers();
  out_.add("signs", "sign of a head along an eigenvector at the end of the flow",
           {heads(), directions()}, signs)
      .whole_numbers();
}

void Task::pruning_measure() {
  const std::vector<PruningStep> steps = prune(problem_, end().point, config_.run, context_);
  std::vector<double> loss, error, removed;
  for (const PruningStep& step : steps) {
    loss.push_back(step.loss);
    error.push_back(step.error);
    removed.push_back(step.removed + 1);
  }
  const Dimension along{"removed", steps.size()};
  out_.add("pruned_loss", "loss after greedily removing 0, 1, ... heads", {along}, loss)
      .with_errors(error, steps.front().error_kind);
  out_.add("removed_head", "number of the head that is removed; 0: none", {along}, removed)
      .whole_numbers();
}

void Task::attention_measure() {
  const Dimension tokens{"token", static_cast<std::size_t>(problem_.L())},
      sequences{"sequence", kAttentionSequences};
  std::vector<double> maps, relevant;
  for (const AttentionMap& map :
       attention_maps(problem_, end().point, kAttentionSequences, config_.run.seed)) {
    maps.insert(maps.end(), map.attention.data(), map.attention.data() + map.attention.size());
    relevant.push_back(map.relevant + 1);
  }
  out_.add("attention", "attention of each head on each token", {sequences, heads(), tokens}, maps);
  out_.add("relevant", "number of the relevant token", {sequences}, relevant).whole_numbers();
}

void Task::measure(Measure measure) {
  const std::size_t first = out_.quantities.size();
  measure_one(measure);
  // Of training that diverged there are the numbers on the way, and no end.
  if (!diverged_ || survives_divergence(measure)) return;
  for (std::size_t i = first; i < out_.quantities.size(); ++i) {
    Quantity& q = out_.quantities[i];
    if (q.name == "converged") continue;
    std::ranges::fill(q.values, std::nan(""));
    std::ranges::fill(q.errors, std::nan(""));
  }
}

void Task::bayes_measure() {
  const BayesRisk risk = bayes_risk(
      problem_, {.tolerance = std::max(config_.run.tolerance, 1e-9), .seed = config_.run.seed},
      context_);
  out_.add("bayes", "Bayes risk", risk.risk).with_errors({risk.error}, risk.error_kind);
}

void Task::similarity_measure() {
  const Matrix q = end().point.q();
  const Vector norm = q.diagonal().cwiseSqrt();
  const Matrix cosine = (q.array() / (norm * norm.transpose()).array()).matrix();
  out_.add("similarity", "cosine of the angle between two heads at the end", {heads(), others()},
           flattened(cosine));
}

void Task::measure_one(Measure measure) {
  switch (measure) {
    case Measure::end: return end_measure();
    case Measure::bayes: return bayes_measure();
    case Measure::flow: return flow_measure();
    case Measure::sgd: return sgd_measure();
    case Measure::phases: return phases_measure();
    case Measure::pruning: return pruning_measure();
    case Measure::similarity: return similarity_measure();
    case Measure::attention: return attention_measure();
  }
}

}  // namespace

std::optional<Dataset> measure_task(const Config& config, const Measures& measures,
                                    const Context& context) {
  auto out = measure_lists(config, {&measures, 1}, context);
  if (!out) return std::nullopt;
  return std::move(out->front());
}

std::optional<std::vector<Dataset>> measure_lists(const Config& config,
                                                  std::span<const Measures> lists,
                                                  const Context& context) {
  for (const Measures& measures : lists) {
    check_measures(measures);
    check_task(config, measures, false);
  }
  try {
    Task task(config, context);
    std::vector<Dataset> out;
    for (const Measures& measures : lists) out.push_back(task.measure(measures));
    return out;
  } catch (const Stopped&) {
    return std::nullopt;
  } catch (const Interrupted&) {
    return std::nullopt;
  }
}

}  // namespace headflow
