#include "expectation/choose_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/unseen.h"
#include "expectation/factorised/factorised.h"
#include "expectation/monte_carlo.h"
#include "expectation/qmc.h"

namespace headflow {
namespace {

// What auto will ask for: samples, and samples times the scores of one, some seconds.
constexpr double kMostSamples = 1 << 22;
constexpr double kMostSampledWork = 2e8;
constexpr double kTrial = 1 << 13;
constexpr double kMostTrialWork = 5e7;
constexpr double kFewestSamples = 64;  // an error needs them

/// An engine, what it would cost and how well it would do.
struct Candidate {
  std::unique_ptr<Engine> engine;
  std::function<std::unique_ptr<Engine>()> make;  // if it is not made yet
  double error = HUGE_VAL;
  double cost = HUGE_VAL;  // in exponentials of a score, roughly
  std::string description;
};

/// The larger of the errors of the loss and of any entry of the gradient.
double largest_error(const Evaluation& result) {
  return std::max(result.loss_error, result.grad_error.max());
}

Candidate without_samples(const Problem& problem, const EngineOptions& options, const Point& point,
                          const Context& context) {
  Candidate out;
  if (!Factorised::why_not(problem).empty()) {
    out.description = Factorised::why_not(problem);
    return out;
  }
  out.engine = std::make_unique<Factorised>(problem, options, context);
  try {
    Evaluation result;
    out.engine->evaluate(point, {.gradient_error = true}, result);
    out.error = largest_error(result);
    out.cost = static_cast<double>(out.engine->samples());
    out.description = fmt::format("factorised reaches {:.2g}", out.error);
  } catch (const Error& error) {
    out.engine = nullptr;
    out.description = error.what();
  }
  return out;
}

/// Scores, and noise, of one sample; a point of qmc is four samples or more.
double work_of_sample(const Problem& problem, bool shared_noise) {
  const double scores = problem.H(), noise = problem.H() + problem.F();
  return problem.L() * (shared_noise ? scores + noise / kMaxPlacements : 4 * scores + noise);
}

/// mc or qmc with as many samples as the tolerance takes, by a trial and the rate of convergence;
/// not more than the work allows, and not at all if that is less than the fewest. Two standard
/// errors count as its error: a tolerance is meant as a bound.
template <class Sampled>
Candidate sampled(const Problem& problem, EngineOptions options, const Point& point,
                  EngineName engine, double rate, double work, double fewest,
                  const Context& context) {
  Candidate out;
  const std::string_view name = to_string(engine);
  options.engine = engine;
  options.samples =
      static_cast<std::int64_t>(std::clamp(kMostTrialWork / work, kFewestSamples, kTrial));
  if (fewest * work > kMostSampledWork) {
    out.description = fmt::format("{} would take too long", name);
    return out;
  }
  try {
    Evaluation result;
    Sampled trial(problem, options, context);
    trial.evaluate(point, {.gradient_error = true}, result);
    const double error = 2 * largest_error(result);
    const auto tried = static_cast<double>(trial.samples());
    const double needed =
        std::max(tried * std::pow(std::max(error / options.tolerance, 1e-3), 1 / rate),
                 kUnseen / options.tolerance);
    const double most = std::max(tried, std::min(kMostSamples, kMostSampledWork / work));
    const double samples = std::clamp(1.3 * needed, std::min(1024.0, most), most);
    options.samples = static_cast<std::int64_t>(samples);
    // Samples that all agree show only that what differs is rare.
    out.error = std::max(error * std::pow(tried / samples, rate), kUnseen / samples);
    out.cost = samples * problem.H() * problem.L();
  } catch (const Error& failure) {  // numbers that overflow, too little memory
    out.description = failure.what();
    return out;
  }
  out.make = [problem, options, context] {
    return std::make_unique<Sampled>(problem, options, context);
  };
  out.description =
      fmt::format("{} with {} samples reaches about {:.2g}", name, options.samples, out.error);
  return out;
}

std::string sentence(const std::string& taken, const std::string& why) {
  return fmt::format("{}: {}", taken, why);
}

}  // namespace

std::unique_ptr<Engine> choose_engine(const Problem& problem, const EngineOptions& options,
                                      const EngineUse& use, const Context& context) {
  if (options.samples > 0) {
    auto engine = std::make_unique<MonteCarlo>(problem, options, context);
    engine->set_reason(sentence("mc", "run.samples asks for samples"));
    return engine;
  }
  if (use.second_moment) {
    auto engine = std::make_unique<MonteCarlo>(problem, options, context);
    engine->set_reason(sentence("mc", "second moments of the gradient are asked for"));
    return engine;
  }
  const Point start = problem.start_point();
  const Point& point = use.point ? *use.point : start;

  Candidate best = without_samples(problem, options, point, context);
  const double trial_cost = kTrial * problem.H() * problem.L();
  if (best.error <= options.tolerance && best.cost <= trial_cost) {
    best.engine->set_reason(sentence(
        "factorised",
        fmt::format(
            "its error {:.2g} meets the tolerance {:g}, and trying the others would cost more",
            best.error, options.tolerance)));
    return std::move(best.engine);
  }
  const double of_point = work_of_sample(problem, false), of_sample = work_of_sample(problem, true);
  Candidate candidates[] = {
      std::move(best),
      sampled<Qmc>(problem, options, point, EngineName::qmc, 0.6, of_point,
                   static_cast<double>(options.randomisations) * kLanes, context),
      sampled<MonteCarlo>(problem, options, point, EngineName::mc, 0.5, of_sample, kFewestSamples,
                          context)};
  Candidate* taken = nullptr;
  std::string seen;
  for (Candidate& candidate : candidates) {
    seen += (seen.empty() ? "" : "; ") + candidate.description;
    if (!candidate.engine && !candidate.make) continue;
    const bool meets = candidate.error <= options.tolerance;
    const bool taken_meets = taken && taken->error <= options.tolerance;
    const bool better = !taken || (meets && !taken_meets) ||
                        (meets == taken_meets &&
                         (meets ? candidate.cost < taken->cost : candidate.error < taken->error));
    if (better) taken = &candidate;
  }
  if (!taken) throw Error(fmt::format("no engine can do this point: {}", seen));
  if (!taken->engine) taken->engine = taken->make();
  const bool meets = taken->error <= options.tolerance;
  taken->engine->set_reason(
      sentence(std::string(taken->engine->name()),
               fmt::format("{} ({}; tolerance {:g})",
                           meets ? "the cheapest that meets the tolerance"
                                 : "no engine meets the tolerance, this one comes closest",
                           seen, options.tolerance)));
  return std::move(taken->engine);
}

}  // namespace headflow
