#include "dynamics/flow.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"
#include "expectation/exact_with_samples.h"

namespace headflow {
namespace {

/// A coordinate this large is on its way to infinity: everything of interest is below 1e3.
constexpr double kDiverged = 1e8;

/// Samples of the second moments, at least.
constexpr double kFewestMoments = 1 << 14;

/// The right-hand side of the flow, on packed states.
class FlowField {
 public:
  FlowField(Engine& engine, const FlowOptions& options)
      : engine_(engine),
        kappa_(options.kappa),
        learning_rate_(options.integrator == "map" ? options.step : 0.0),
        point_(Point::zero(engine.problem().H(), engine.problem().F())) {
    request_.loss_error = false;
    request_.second_moment = kappa_ > 0;
  }

  Vector pack(const Point& point) const {
    Point state = point;
    if (kappa_ > 0) state.R = point.R * point.R.transpose();
    Vector y(state.size());
    state.pack(y.data());
    return y;
  }

  const Point& unpack(const double* y) {
    point_.unpack(y);
    if (kappa_ > 0) point_.R = positive_square_root(point_.R);
    return point_;
  }

  bool operator()(const double* y, double* velocity) {
    const Eigen::Map<const Vector> state(y, point_.size());
    if (!state.allFinite() || state.cwiseAbs().maxCoeff() > kDiverged) return false;
    const Point& point = unpack(y);
    engine_.evaluate(point, request_, evaluation_);
    ++evaluations_;
    Point& grad = evaluation_.grad;
    if (!std::isfinite(evaluation_.loss) || !grad.all_finite()) return false;
    if (kappa_ > 0) {
      const Matrix half = grad.R * point.R.transpose();
      // Euler's step with the last term is the map: with G = grad_R E and its rate gamma,
      // (R - gamma G)(R - gamma G)^T = R R^T - gamma (G R^T + R G^T - gamma G G^T).
      const Matrix square = grad.R * grad.R.transpose();
      grad.R =
          half + half.transpose() - kappa_ * evaluation_.second_moment - learning_rate_ * square;
    }
    grad.pack(velocity);
    Eigen::Map<Vector>(velocity, point_.size()) *= -1.0;
    return true;
  }

  Engine& engine() { return engine_; }
  double last_loss() const { return evaluation_.loss; }
  std::int64_t evaluations() const { return evaluations_; }
  void count_evaluation() { ++evaluations_; }

 private:
  Engine& engine_;
  double kappa_, learning_rate_;
  Point point_;
  Request request_;
  Evaluation evaluation_;
  std::int64_t evaluations_ = 0;
};

std::unique_ptr<Integrator> make_integrator(const FlowOptions& options, FlowField& flow,
                                            const Vector& y0) {
  const Field field = [&flow](const double* y, double* velocity) { return flow(y, velocity); };
  if (options.integrator == "explicit") {
    return make_explicit(field, y0, options.rtol, options.atol);
  }
  if (options.integrator == "implicit") {
    return make_implicit(field, y0, options.rtol, options.atol);
  }
  std::function<void(std::int64_t)> redraw;
  if (options.sampling == "redrawn") {
    redraw = [&flow](std::int64_t k) { flow.engine().refresh(static_cast<std::uint32_t>(k)); };
  }
  return make_euler(field, y0, options.step, redraw);
}

void require(bool holds, const char* key, double value, const char* rule) {
  if (!holds) throw OptionError(fmt::format("flow.{}", key), fmt::format("{}", value), rule);
}

void require_choice(const char* key, const std::string& value,
                    const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return;
  }
  throw OptionError(fmt::format("flow.{}", key), in_quotes(value), one_of(choices, value));
}

}  // namespace

std::string_view to_string(FlowOutcome outcome) {
  switch (outcome) {
    case FlowOutcome::reached_time: return "reached_time";
    case FlowOutcome::stationary: return "stationary";
    case FlowOutcome::diverged: return "diverged";
    case FlowOutcome::interrupted: return "interrupted";
  }
  return "unknown";
}

void FlowOptions::check() const {
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  const auto not_negative = [](double x) { return x >= 0 && std::isfinite(x); };
  require_choice("init", init, {"noise", "point", "file"});
  if (init == "file" && init_from.empty()) {
    throw OptionError("flow.init_from", "", "init = \"file\" needs a result file to start from");
  }
  require(init_run >= 1, "init_run", init_run, "must be 1 or more");
  require(not_negative(init_noise), "init_noise", init_noise, "must be finite and not negative");
  require(positive(time), "time", time, "must be finite and positive");
  require(not_negative(gradient_tolerance), "gradient_tolerance", gradient_tolerance,
          "must be finite and not negative");
  require_choice("integrator", integrator, {"euler", "explicit", "implicit", "map"});
  require(positive(step), "step", step, "must be finite and positive");
  require(rtol >= 1e-14 && rtol <= 0.1, "rtol", rtol, "must be from 1e-14 to 0.1");
  require(atol >= 1e-16 && atol <= 0.1, "atol", atol, "must be from 1e-16 to 0.1");
  require(not_negative(kappa), "kappa", kappa, "must be finite and not negative");
  require_choice("sampling", sampling, {"fixed", "redrawn"});
  if (sampling == "redrawn" && integrator != "euler" && integrator != "map") {
    throw OptionError("flow.sampling", in_quotes(sampling),
                      "redrawn samples need integrator = \"euler\" or \"map\": adaptive steps "
                      "would chase the noise");
  }
  require(outputs >= 1 && outputs <= 10'000'000, "outputs", outputs, "must be from 1 to 10^7");
  require_choice("spacing", spacing, {"linear", "log"});
  require(positive(first_output) && (spacing != "log" || first_output < time), "first_output",
          first_output, "must be positive and below flow.time");
}

std::vector<double> output_times(const FlowOptions& options) {
  if (!options.times.empty()) return options.times;
  std::vector<double> times{0.0};
  const double n = options.outputs;
  for (int i = 1; i <= options.outputs; ++i) {
    if (options.spacing == "linear") {
      times.push_back(options.time * (i / n));
    } else {
      const double fraction = options.outputs > 1 ? (i - 1) / (n - 1) : 1.0;
      times.push_back(options.first_output *
                      std::pow(options.time / options.first_output, fraction));
    }
  }
  times.back() = options.time;
  return times;
}

Point initial_point(const Problem& problem, double noise, std::uint64_t seed) {
  RandomStream stream({seed, Purpose::initial_point, 0}, 0);
  Point point = Point::zero(problem.H(), problem.F());
  for (double& x : point.m.reshaped<Eigen::RowMajor>()) x = noise * stream.normal();
  for (double& x : point.R.reshaped<Eigen::RowMajor>()) x = noise * stream.normal();
  point.R.diagonal().array() += problem.eta();
  point.v = 1.0;
  return point;
}

std::string FlowSummary::brief() const {
  return fmt::format("{}: {} ({} steps, {} evaluations, {:.2f} s)", to_string(outcome), message,
                     steps, evaluations, seconds);
}

std::unique_ptr<Engine> make_flow_engine(const Problem& problem, EngineOptions engine,
                                         const FlowOptions& options, const Point& start) {
  if (options.gradient_tolerance > 0) {
    engine.tolerance =
        std::min(engine.tolerance, std::max(0.1 * options.gradient_tolerance, 1e-12));
  }
  const bool noise = options.kappa > 0;
  const bool exact =
      engine.engine == "factorised" || (engine.engine == "auto" && engine.samples == 0);
  if (!noise || !exact) return make_engine(problem, engine, {&start, noise});
  EngineOptions without_samples = engine;
  without_samples.samples = 0;
  auto gradient = make_engine(problem, without_samples, {&start, false});
  if (gradient->has_second_moment()) return gradient;
  engine.engine = "qmc";
  if (engine.samples == 0) {  // an error of kappa / sqrt(samples), up to 1e-3
    const double wanted = 1e6 * options.kappa * options.kappa;
    engine.samples = static_cast<std::int64_t>(
        std::clamp(wanted, kFewestMoments, static_cast<double>(kDefaultSamples)));
  }
  return exact_with_samples(std::move(gradient), make_engine(problem, engine));
}

FlowSummary integrate_flow(Engine& engine, const Point& start, const FlowOptions& options,
                           Trajectory& trajectory, const FlowObserver& observer) {
  options.check();
  engine.problem().check(start);
  if (options.kappa > 0 && !engine.has_second_moment()) {
    throw OptionError("run.engine", in_quotes(engine.name()),
                      "has no second moments of the gradient, which flow.kappa needs; use \"mc\" "
                      "or \"qmc\"");
  }
  if (options.sampling == "redrawn" && engine.tolerance() > 0) {
    throw OptionError("flow.sampling", in_quotes(options.sampling),
                      fmt::format("needs an engine with samples, not {}", engine.name()));
  }
  engine.adapt(start);
  const auto begin = std::chrono::steady_clock::now();
  FlowField field(engine, options);
  const Vector y0 = field.pack(start);
  FlowSummary summary;

  Evaluation evaluation;
  const auto record = [&](double time, const double* y) {
    const Point& point = field.unpack(y);
    engine.evaluate(point, {.gradient_error = true}, evaluation);
    field.count_evaluation();
    trajectory.time.push_back(time);
    trajectory.point.push_back(point);
    trajectory.loss.push_back(evaluation.loss);
    trajectory.loss_error.push_back(evaluation.loss_error);
    trajectory.gradient_norm.push_back(evaluation.grad.norm());
    trajectory.gradient_error.push_back(evaluation.grad_error.norm());
  };
  record(0.0, y0.data());

  const std::unique_ptr<Integrator> integrator = make_integrator(options, field, y0);
  const std::vector<double> times = output_times(options);
  std::size_t next = 1;  // times[0] = 0 is recorded
  Vector y(y0.size()), velocity(y0.size()), last_good = y0;
  double end = options.time;
  const char* speed = options.kappa > 0 ? "speed |dy/dtau|" : "norm of the gradient";

  for (bool running = true; running;) {
    const double before = integrator->time();
    bool good = integrator->advance();
    std::string why = good ? "" : integrator->why();
    if (good) {
      integrator->state(integrator->time(), y.data());
      good = y.allFinite() && y.cwiseAbs().maxCoeff() <= kDiverged;
      if (!good) why = fmt::format("a coordinate passed {:g}", kDiverged);
    }
    if (!good) {
      summary.outcome = FlowOutcome::diverged;
      summary.message = fmt::format("the flow diverged after tau = {:.6g}: {}", before, why);
      summary.final_time = before;
      if (trajectory.time.back() < before) record(before, last_good.data());
      break;
    }
    ++summary.steps;
    last_good = y;
    if (integrator->time() < options.time) engine.follow(field.unpack(y.data()));

    end = std::min(integrator->time(), options.time);
    if (integrator->time() >= options.time) {
      running = false;
      summary.outcome = FlowOutcome::reached_time;
      summary.message = fmt::format("stopped at tau = {:g}, as asked", options.time);
      if (options.gradient_tolerance > 0) {
        summary.message += fmt::format("; the {}, about {:.3g}, is not below {:g}", speed,
                                       integrator->speed(), options.gradient_tolerance);
      }
    } else if (options.gradient_tolerance > 0 &&
               integrator->speed() < 2.0 * options.gradient_tolerance &&
               field(y.data(), velocity.data()) && velocity.norm() < options.gradient_tolerance) {
      running = false;
      summary.outcome = FlowOutcome::stationary;
      summary.message = fmt::format("the {}, {:.3g}, is below {:g} at tau = {:.6g}", speed,
                                    velocity.norm(), options.gradient_tolerance, end);
    }
    for (; next < times.size() && times[next] <= end; ++next) {
      integrator->state(times[next], y.data());
      record(times[next], y.data());
    }
    if (running && observer &&
        !observer({end, field.last_loss(), summary.steps, field.evaluations()})) {
      running = false;
      summary.outcome = FlowOutcome::interrupted;
      summary.message = fmt::format("interrupted at tau = {:.6g}", end);
    }
    if (!running && trajectory.time.back() < end) {
      integrator->state(end, y.data());
      record(end, y.data());
    }
    summary.final_time = end;
  }
  summary.evaluations = field.evaluations();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

}  // namespace headflow
