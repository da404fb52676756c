// How large and how long a task will be.

#include <algorithm>
#include <cmath>

#include "core/tolerance.h"
#include "study/measure_info.h"

namespace headflow {
namespace {

// Measured on one core (docs/performance.md), seconds.
constexpr double kSampleOfSgd = 5.5e-9;     // a coordinate of a token of a sample
constexpr double kSampleOfEngine = 1.3e-9;  // a head at a token of a sample
constexpr double kFactorised = 4e-5;        // a pair of heads, F = 2, tolerance 1e-4
constexpr double kJoint = 1.2e-5;           // B-softmax: times 3^H
constexpr double kPath = 1.5e-3;            // a head, tolerance 1e-4, at large scores
constexpr double kNormal = 6e-9;            // a coordinate of a point
constexpr double kPosterior = 5e-8;         // of a token, for a component of the prior
constexpr double kAdaptiveSteps = 300;      // evaluations of an adaptive flow to 10^4

struct TaskSizes {
  double H, F, L;
};

TaskSizes sizes_of(const Config& c) {
  return {static_cast<double>(c.problem.heads), static_cast<double>(c.problem.features),
          static_cast<double>(c.problem.tokens)};
}

double evaluation_seconds(const Config& c, bool second_moment) {
  const auto [H, F, L] = sizes_of(c);
  const bool samples = c.run.engine == EngineName::mc || c.run.engine == EngineName::qmc ||
                       second_moment ||
                       (c.run.engine == EngineName::automatic && c.run.samples > 0);
  if (samples) {
    const double n = c.run.samples > 0 ? static_cast<double>(c.run.samples)
                                       : static_cast<double>(kDefaultSamples);
    return kSampleOfEngine * n * H * L;
  }
  const double digits =
      -std::log10(std::clamp(c.run.tolerance, kFinestTolerance, kCoarsestTolerance));
  const double finer = std::pow(2.0, digits - 4);
  const Factorisation how = c.problem.find_activation()->factorisation();
  if (std::holds_alternative<JointlyNormalised>(how)) {  // over H directions, or nodes of one token
    return std::min(finer * kJoint * std::pow(3.0, std::min(H, 8.0)),
                    kPath * H * std::pow(10.0, 1.6 * (digits - 4)));
  }
  return kFactorised * finer * H * H * F / 2;
}

double flow_seconds(const Config& c) {
  const FlowOptions& flow = c.flow;
  const bool fixed = flow.integrator == Scheme::euler || flow.integrator == Scheme::map;
  const double steps =
      fixed ? flow.time / flow.step : kAdaptiveSteps * std::max(1.0, std::log10(flow.time) - 3);
  return (steps + flow.outputs) * evaluation_seconds(c, flow.kappa > 0);
}

double end_seconds(const Config& c) {
  if (c.end.search == EndSearch::flow) return kAdaptiveSteps * evaluation_seconds(c, false);
  const auto [H, F, L] = sizes_of(c);
  const double columns = H * (F + H + 1) + 1;  // of the Hessian
  return (1.5 * kAdaptiveSteps + 6 * columns) * evaluation_seconds(c, false);
}

double sgd_seconds(const Config& c) {
  const auto [H, F, L] = sizes_of(c);
  const SgdOptions& sgd = c.sgd;
  const auto steps = static_cast<double>(sgd.total_steps());
  const double columns =
      sgd.method == SgdAlgorithm::direct ? 0.25 * static_cast<double>(sgd.dim) : F + 2 * H;
  double out = kSampleOfSgd * columns * L * static_cast<double>(sgd.batch) * steps;
  for (const LimitKind limit : c.compare.theory) {
    const bool stepped = limit == LimitKind::map || limit == LimitKind::first_order;
    out += (stepped ? steps : kAdaptiveSteps + sgd.outputs) *
           evaluation_seconds(c, limit != LimitKind::flow);
  }
  return out;
}

std::shared_ptr<const Prior> prior_of(const Config& c) {
  if (c.problem.has_own_prior()) return c.problem.own_prior.prior;
  return find_prior(c.problem.prior).make(c.problem.features, c.problem.prior_parameters);
}

double excess_seconds(const Config& c) {
  if (c.loss.excess == 0) return 0;
  const auto [H, F, L] = sizes_of(c);
  const std::shared_ptr<const Prior> prior = prior_of(c);
  const GaussianMixture* mixture = prior->mixture();
  const double components = mixture ? static_cast<double>(mixture->components().size()) : 1;
  return static_cast<double>(c.loss.excess) * L *
         (kNormal * (F + H) + components * (kPosterior + kSampleOfEngine * H));
}

/// Of a point: m, norms of R, blocks.
double numbers_of_point(const Config& c) {
  const auto [H, F, L] = sizes_of(c);
  const BlockLayout blocks(c.problem.find_activation()->blocks(),
                           {c.problem.tokens, c.problem.heads, c.problem.features});
  return H * F + H + static_cast<double>(blocks.size());
}

double numbers_of(const Config& c, Measure measure) {
  const auto [H, F, L] = sizes_of(c);
  switch (measure) {
    case Measure::end: return (c.loss.excess > 0 ? 9 : 7) + numbers_of_point(c);
    case Measure::bayes: return 2;
    case Measure::flow: return (c.flow.outputs + 2.0) * (3 + numbers_of_point(c));
    case Measure::sgd: {
      const auto theories = static_cast<double>(c.compare.theory.size());
      return (c.sgd.outputs + 1.0) * (3 + (1 + theories) * (2 + H * F + H * H));
    }
    case Measure::phases: return 2 + 3 * F + F * F + H * F;
    case Measure::pruning: return 3 * H;
    case Measure::similarity: return H * H;
    case Measure::attention: return kAttentionSequences * (H * L + 1);
  }
  return 0;
}

}  // namespace

double numbers_of(const Config& c, const Measures& measures) {
  double out = 1;  // diverged
  for (const Measure measure : measures) out += numbers_of(c, measure);
  return out;
}

double expected_seconds(const Config& c, const Measures& measures) {
  double out = 1e-4;
  const auto needs = [&](Source source) {
    return std::ranges::any_of(measures, [&](Measure m) { return source_of(m) == source; });
  };
  const auto has = [&](Measure one) { return std::ranges::count(measures, one) > 0; };
  if (needs(Source::flow)) out += flow_seconds(c);
  if (needs(Source::sgd)) out += sgd_seconds(c);
  if (needs(Source::end)) out += end_seconds(c);
  if (has(Measure::end)) out += excess_seconds(c);
  if (has(Measure::pruning)) {
    out += 0.5 * c.problem.heads * (c.problem.heads + 1) * evaluation_seconds(c, false);
  }
  if (has(Measure::bayes)) out += prior_of(c)->uses_normals() ? 0.005 : 0.02;
  return out;
}

}  // namespace headflow
