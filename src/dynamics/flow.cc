#include "dynamics/flow.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/require.h"
#include "core/suggest.h"
#include "dynamics/flow_field.h"
#include "dynamics/integrator.h"
#include "expectation/exact_with_samples.h"

namespace headflow {
namespace {

/// Samples of the second moments, at least.
constexpr double kFewestMoments = 1 << 14;

/// A trajectory is kept in memory, and once more while it is written.
constexpr double kMostBytes = 1 << 29;

std::unique_ptr<Integrator> make_integrator(const FlowOptions& options, FlowField& flow,
                                            const Vector& y0, const Context& context) {
  const Field field = [&flow](const double* y, double* velocity) { return flow(y, velocity); };
  const bool implicit = options.integrator == Scheme::implicit ||
                        (options.integrator == Scheme::first_order && y0.size() <= kMostUnknowns);
  if (options.integrator == Scheme::adaptive ||
      (options.integrator == Scheme::first_order && !implicit)) {
    return make_explicit(field, y0, options.rtol, options.atol);
  }
  if (implicit) {
    return make_implicit(field, y0, options.rtol, options.atol, context, flow.slopes());
  }
  std::function<void(std::int64_t)> redraw;
  if (options.sampling == Sampling::redrawn) {
    redraw = [&flow](std::int64_t k) { flow.engine().refresh(static_cast<std::uint32_t>(k)); };
  }
  return make_euler(field, y0, options.step, redraw);
}

}  // namespace

std::string to_text(const FileTime& time) {
  const auto* number = std::get_if<double>(&time);
  return number ? fmt::format("{}", *number) : std::string(to_string(std::get<Moment>(time)));
}

void check_unknowns(const Problem& problem, const std::string& why) {
  const Eigen::Index unknowns =
      problem.H() * (problem.F() + problem.H()) + problem.layout()->size();
  if (unknowns <= kMostUnknowns) return;
  throw Error(fmt::format(
      "{}: {} heads and {} features are {} unknowns, and a dense matrix of at most {} fits; take "
      "fewer heads, or flow.integrator = \"explicit\"",
      why, problem.H(), problem.F(), unknowns, kMostUnknowns));
}

void FlowOptions::check_start() const {
  const auto not_negative = [](double x) { return x >= 0 && std::isfinite(x); };
  if (init == FlowInit::file && init_from.empty()) {
    throw OptionError("flow.init_from", "", "init = \"file\" needs a result file to start from");
  }
  require(init_run >= 1, "flow.init_run", init_run, "must be 1 or more");
  if (init_from.empty()) {
    require(init_run == 1, "flow.init_run", init_run,
            "is the number of a run in init_from: give that");
    if (init_time != FileTime(Moment::first)) {
      throw OptionError("flow.init_time", in_quotes(to_text(init_time)),
                        "is a time of a file, init_from: give that");
    }
  }
  require(not_negative(noise()), "flow.init_noise", noise(), "must be finite and not negative");
  for (const auto& [name, values] : init_blocks) {
    if (values.rows() == 1 && values.cols() >= 1 && values.allFinite()) continue;
    throw OptionError("flow.init_" + name, parameter_text(values),
                      "must be one finite number, or one for each head");
  }
}

void FlowOptions::check() const {
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  const auto not_negative = [](double x) { return x >= 0 && std::isfinite(x); };
  check_start();
  require(positive(time), "flow.time", time, "must be finite and positive");
  require(not_negative(gradient_tolerance), "flow.gradient_tolerance", gradient_tolerance,
          "must be finite and not negative");
  require(positive(step), "flow.step", step, "must be finite and positive");
  require(rtol >= 1e-14 && rtol <= 0.1, "flow.rtol", rtol, "must be from 1e-14 to 0.1");
  require(atol >= 1e-16 && atol <= 0.1, "flow.atol", atol, "must be from 1e-16 to 0.1");
  require(not_negative(kappa), "flow.kappa", kappa, "must be finite and not negative");
  const bool stepped = integrator == Scheme::euler || integrator == Scheme::map;
  const bool redrawn = sampling == Sampling::redrawn;
  if (redrawn && !stepped) {
    throw OptionError("flow.sampling", in_quotes(to_string(sampling)),
                      "redrawn samples need integrator = \"euler\" or \"map\": adaptive steps "
                      "would chase the noise");
  }
  if (redrawn && !(time / step < kFreshDraws)) {
    throw OptionError("flow.step", fmt::format("{}", step),
                      fmt::format("makes more than {} steps, as many as there are independent "
                                  "draws of samples; take a larger step or a shorter time",
                                  kFreshDraws));
  }
  require(!stepped || time / step <= 1e12, "flow.step", step, "makes more than 10^12 steps");
  require(outputs >= 1 && outputs <= 10'000'000, "flow.outputs", outputs, "must be from 1 to 10^7");
  require(positive(first_output) && (spacing != Spacing::log || first_output < time),
          "flow.first_output", first_output, "must be positive and below flow.time");
}

std::vector<double> output_times(const FlowOptions& options) {
  if (!options.times.empty()) return options.times;
  std::vector<double> times{0.0};
  const double n = options.outputs;
  for (int i = 1; i <= options.outputs; ++i) {
    if (options.spacing == Spacing::linear) {
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

Point noisy(Point point, double noise, std::uint64_t seed, std::uint64_t number) {
  RandomStream stream({seed, Purpose::initial_point, 0}, number);
  for (double& x : point.m.reshaped<Eigen::RowMajor>()) x += noise * stream.normal();
  for (double& x : point.R.reshaped<Eigen::RowMajor>()) x += noise * stream.normal();
  return point;
}

Point initial_point(const Problem& problem, double noise, std::uint64_t seed,
                    std::uint64_t number) {
  return noisy(problem.start_point(), noise, seed, number);
}

std::string FlowSummary::brief() const {
  return fmt::format("{}: {} ({} steps, {} evaluations, {:.2f} s)", to_string(outcome), message,
                     steps, evaluations, seconds);
}

std::unique_ptr<Engine> make_flow_engine(const Problem& problem, EngineOptions engine,
                                         const FlowOptions& options, const Point& start,
                                         const Context& context) {
  if (options.integrator == Scheme::implicit) {  // before an engine for so many heads is made
    check_unknowns(problem, "flow.integrator = \"implicit\"");
  }
  if (options.gradient_tolerance > 0) {
    engine.tolerance =
        std::min(engine.tolerance, std::max(0.1 * options.gradient_tolerance, 1e-12));
  }
  const bool noise = options.kappa > 0;
  const bool exact = engine.engine == EngineName::factorised ||
                     (engine.engine == EngineName::automatic && engine.samples == 0);
  if (!noise || !exact) return make_engine(problem, engine, {&start, noise}, context);
  EngineOptions without_samples = engine;
  without_samples.samples = 0;
  auto gradient = make_engine(problem, without_samples, {&start, false}, context);
  if (gradient->has_second_moment()) return gradient;
  engine.engine = EngineName::qmc;
  if (engine.samples == 0) {  // an error of kappa / sqrt(samples), up to 1e-3
    const double wanted = 1e6 * options.kappa * options.kappa;
    engine.samples = static_cast<std::int64_t>(
        std::clamp(wanted, kFewestMoments, static_cast<double>(kDefaultSamples)));
  }
  return exact_with_samples(std::move(gradient), make_engine(problem, engine, {}, context));
}

namespace {

/// What the engine can do of what the options ask for, and what fits into memory.
void check_flow(const Engine& engine, const Point& start, const FlowOptions& options) {
  options.check();
  engine.problem().check(start);
  if (options.kappa > 0 && !engine.has_second_moment()) {
    throw OptionError("run.engine", in_quotes(engine.name()),
                      "has no second moments of the gradient, which flow.kappa needs; use \"mc\" "
                      "or \"qmc\"");
  }
  // The noise of SGD moves R R^T, whatever its gradient.
  if (options.kappa > 0 && (!engine.problem().trains("m") || !engine.problem().trains("R"))) {
    throw OptionError("problem.train", "without m or R",
                      "flow.kappa keeps the noise of SGD, which trains m and R together");
  }
  if (options.sampling == Sampling::redrawn && !engine.sampled()) {
    throw OptionError("flow.sampling", in_quotes(to_string(options.sampling)),
                      fmt::format("needs an engine with samples, not {}", engine.name()));
  }
  if (options.integrator == Scheme::implicit) {
    check_unknowns(engine.problem(), "flow.integrator = \"implicit\"");
  }
  const double bytes = 8.0 * static_cast<double>(start.size() + 40) * options.outputs;
  if (options.times.empty() && bytes > kMostBytes) {
    throw OptionError("flow.outputs", fmt::format("{}", options.outputs),
                      fmt::format("of {} numbers each would take {:.3g} GB; ask for fewer",
                                  start.size(), 1e-9 * bytes));
  }
}

/// One run: steps, and what is recorded along them.
class FlowRun {
 public:
  FlowRun(Engine& engine, const Point& start, const FlowOptions& options, Trajectory& trajectory,
          const Context& context)
      : engine_(engine),
        options_(options),
        trajectory_(trajectory),
        context_(context),
        field_(engine, options),
        times_(output_times(options)),
        y_(field_.pack(start)),
        velocity_(y_.size()),
        last_good_(y_) {}

  FlowSummary run() {
    const auto begin = std::chrono::steady_clock::now();
    note_kinks();
    try {
      record(0.0, y_.data());
      integrator_ = make_integrator(options_, field_, y_, context_);
      while (step()) {
      }
    } catch (const Interrupted&) {
      if (trajectory_.time.empty()) throw;
      interrupted(trajectory_.time.back());
    }
    summary_.evaluations = field_.evaluations();
    summary_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(summary_);
  }

 private:
  /// Adaptive steps would resolve every jump of the gradient.
  void note_kinks() const {
    const bool adaptive =
        options_.integrator != Scheme::euler && options_.integrator != Scheme::map;
    if (!adaptive || engine_.problem().activation().smooth() || options_.rtol > 5e-4) return;
    context_.note(
        fmt::format("the activation {} has kinks, so that its gradient over samples jumps: steps "
                    "are small at flow.rtol = {:g}; 1e-3, with flow.atol = 1e-4, is exact enough",
                    engine_.problem().activation().name(), options_.rtol));
  }

  void record(double time, const double* y) {
    const Point& point = field_.unpack(y);
    engine_.evaluate(point, {.gradient_error = true}, evaluation_);
    field_.count_evaluation();
    trajectory_.time.push_back(time);
    trajectory_.point.push_back(point);
    trajectory_.loss.push_back(evaluation_.loss);
    trajectory_.loss_error.push_back(evaluation_.loss_error);
    engine_.problem().freeze(evaluation_.grad);
    engine_.problem().freeze(evaluation_.grad_error);
    trajectory_.gradient_norm.push_back(evaluation_.grad.norm());
    trajectory_.gradient_error.push_back(evaluation_.grad_error.norm());
  }

  void interrupted(double time) {
    summary_.outcome = FlowOutcome::interrupted;
    summary_.message = fmt::format("interrupted at tau = {:.6g}", time);
    summary_.final_time = time;
  }

  bool goes_on(double time) const {
    if (!context_.observer) return true;
    // With log-spaced output the interesting times are spread over decades: so is the fraction.
    const double fraction = options_.spacing == Spacing::log
                                ? std::log1p(time / options_.first_output) /
                                      std::log1p(options_.time / options_.first_output)
                                : time / options_.time;
    context_.status({.fraction = fraction,
                     .time = time,
                     .loss = field_.last_loss(),
                     .count = static_cast<double>(field_.evaluations()),
                     .unit = "evaluations"});
    return context_.goes_on();
  }

  void diverged(double before, const std::string& why) {
    summary_.outcome = FlowOutcome::diverged;
    summary_.message = fmt::format("the flow diverged after tau = {:.6g}: {}", before, why);
    summary_.final_time = before;
    if (trajectory_.time.back() < before) record(before, last_good_.data());
  }

  /// True if the flow has arrived; summary_ then says where.
  bool arrived(double end) {
    const char* speed = options_.kappa > 0 ? "speed |dy/dtau|" : "norm of the gradient";
    if (integrator_->time() >= options_.time) {
      summary_.outcome = FlowOutcome::reached_time;
      summary_.message = fmt::format("stopped at tau = {:g}, as asked", options_.time);
      if (options_.gradient_tolerance > 0) {
        summary_.message += fmt::format("; the {}, about {:.3g}, is not below {:g}", speed,
                                        integrator_->speed(), options_.gradient_tolerance);
      }
      return true;
    }
    if (options_.gradient_tolerance > 0 &&
        integrator_->speed() < 2.0 * options_.gradient_tolerance &&
        field_(y_.data(), velocity_.data()) && velocity_.norm() < options_.gradient_tolerance) {
      summary_.outcome = FlowOutcome::stationary;
      summary_.message = fmt::format("the {}, {:.3g}, is below {:g} at tau = {:.6g}", speed,
                                     velocity_.norm(), options_.gradient_tolerance, end);
      return true;
    }
    return false;
  }

  /// One step and what falls into it; false if it was the last one.
  bool step() {
    const double before = integrator_->time();
    bool good = integrator_->advance();
    std::string why = good ? "" : integrator_->why();
    if (good) {
      integrator_->state(integrator_->time(), y_.data());
      good = y_.allFinite() && y_.cwiseAbs().maxCoeff() <= kDiverged;
      if (!good) why = fmt::format("a coordinate passed {:g}", kDiverged);
    }
    if (!good) {
      diverged(before, why);
      return false;
    }
    ++summary_.steps;
    last_good_ = y_;
    if (integrator_->time() < options_.time) engine_.follow(field_.unpack(y_.data()));

    const double end = std::min(integrator_->time(), options_.time);
    summary_.final_time = end;
    bool running = !arrived(end);
    // A single step may pass many output times.
    for (; next_ < times_.size() && times_[next_] <= end; ++next_) {
      integrator_->state(times_[next_], y_.data());
      record(times_[next_], y_.data());
      if (times_[next_] < end && !goes_on(times_[next_])) {
        interrupted(times_[next_]);
        return false;
      }
    }
    if (running && !goes_on(end)) {
      interrupted(end);
      running = false;
    }
    if (!running && trajectory_.time.back() < end) {
      integrator_->state(end, y_.data());
      record(end, y_.data());
    }
    return running;
  }

  Engine& engine_;
  const FlowOptions& options_;
  Trajectory& trajectory_;
  const Context& context_;
  FlowField field_;
  std::unique_ptr<Integrator> integrator_;
  std::vector<double> times_;
  std::size_t next_ = 1;  // times_[0] = 0 is recorded first
  Vector y_, velocity_, last_good_;
  Evaluation evaluation_;
  FlowSummary summary_;
};

}  // namespace

FlowSummary integrate_flow(Engine& engine, const Point& start, const FlowOptions& options,
                           Trajectory& trajectory, const Context& context) {
  check_flow(engine, start, options);
  engine.adapt(start);
  return FlowRun(engine, start, options, trajectory, context).run();
}

}  // namespace headflow
