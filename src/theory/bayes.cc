#include "theory/bayes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/tolerance.h"
#include "core/unseen.h"
#include "theory/evidence.h"

namespace headflow {
namespace {

constexpr double kMostWork = 1 << 28;  // evaluations of a component on a grid: some seconds
constexpr double kRounding = 2e-14;    // of sums and interpolations, at risks of order one
constexpr double kFiner = 1.3;         // digits of a level over those of the one before
constexpr double kLeastFiner = 1.05;
constexpr double kFewestDigits = 6.0;  // below, a grid says nothing
constexpr double kMostDigits = 50.0;
constexpr double kLargestU = 500.0;

/// E_Bayes from the evidence of its blocks.
class Level {
 public:
  Level(int L, double digits) : L_(L), range_{digits, std::log(L)} {}

  const EvidenceRange& range() const { return range_; }
  void add(std::unique_ptr<Evidence> evidence, int times) {
    parts_.push_back({std::move(evidence), static_cast<double>(times)});
  }

  double risk() const {
    // Step from 4 pi e / d exp(-pi^2 / d) < exp(-digits).
    const double step = std::numbers::pi * std::numbers::pi / (range_.digits + 5.0);
    double sum = 0;
    for (double n = 0;; ++n) {
      const double u = range_.smallest_u() + n * step;
      const auto [h, log_g] = at(u);
      sum += h * h * std::exp(u + (L_ - 2) * log_g);
      const double rest = h * std::exp((L_ - 1) * log_g);
      if (!(rest > std::exp(-range_.digits - 2.0)) || u > kLargestU) break;
    }
    return step * (L_ - 1) * sum;
  }

  std::int64_t nodes() const {
    std::int64_t sum = 0;
    for (const Part& part : parts_) sum += part.evidence->nodes();
    return sum;
  }

 private:
  struct Part {
    std::unique_ptr<Evidence> evidence;
    double times;
  };
  struct Total {
    double h, log_g;
  };

  /// g = prod_b g_b and h = -e^-u g' = sum_b h_b g / g_b.
  Total at(double u) const {
    if (parts_.size() == 1 && parts_[0].times == 1) return one(parts_[0].evidence->at(u), u);
    double log_g = 0, ratio = 0;  // sum_b h_b / g_b
    for (const auto& [evidence, times] : parts_) {
      const Total part = one(evidence->at(u), u);
      log_g += times * part.log_g;
      ratio += times * part.h * std::exp(-part.log_g);
    }
    return {ratio * std::exp(log_g), log_g};
  }

  static Total one(const EvidenceValues& value, double u) {
    const double lost = std::exp(u) * value.Q;
    // Below 1e-300 g is rounding, and so is everything that it multiplies.
    const double log_g = lost < 0.5 ? std::log1p(-lost) : std::log(std::max(value.g, 1e-300));
    return {std::max(value.h, 0.0), log_g};
  }

  double L_;
  EvidenceRange range_;
  std::vector<Part> parts_;
};

/// The blocks of a prior, and how each is computed.
class Quadrature {
 public:
  Quadrature(const GaussianMixture& prior, int L, const BayesOptions& options,
             const Context& context)
      : blocks_(evidence_blocks(prior, options.method == BayesMethod::grid)),
        grid_only_(options.method == BayesMethod::grid),
        L_(L),
        workers_(context) {}

  struct Result {
    double risk;
    std::int64_t nodes;
  };
  /// Nothing if a grid would be too large.
  std::optional<Result> risk(double digits) const {
    Level level(L_, digits);
    for (const EvidenceBlock& block : blocks_) {
      auto evidence = alone(block) ? mellin_evidence(block.components[0], level.range())
                                   : grid_evidence(block, level.range(), kMostWork, workers_);
      if (!evidence) return std::nullopt;
      level.add(std::move(evidence), block.times);
    }
    return Result{level.risk(), level.nodes()};
  }

  std::string method() const {
    int mellin = 0, grids = 0;
    Eigen::Index widest = 0;
    for (const EvidenceBlock& block : blocks_) {
      (alone(block) ? mellin : grids) += block.times;
      if (!alone(block)) widest = std::max(widest, block.components[0].mean.size());
    }
    std::string text;
    if (mellin > 0) {
      text = fmt::format("Mellin-Barnes ({} component{})", mellin, mellin > 1 ? "s" : "");
    }
    if (grids > 0) {
      text += fmt::format("{}grid ({} block{}, dimension {})", mellin > 0 ? " and " : "", grids,
                          grids > 1 ? "s" : "", widest);
    }
    return text;
  }

 private:
  bool alone(const EvidenceBlock& block) const {
    return block.components.size() == 1 && !grid_only_;
  }

  std::vector<EvidenceBlock> blocks_;
  bool grid_only_;
  int L_;
  Workers workers_;
};

/// Levels of more and more digits until two agree. Nothing if not even two can be had.
std::optional<BayesRisk> by_quadrature(const GaussianMixture& prior, int L,
                                       const BayesOptions& options, const Context& context) {
  const Quadrature quadrature(prior, L, options, context);
  // At first a little better than the tolerance; less if that is too much for a grid.
  double digits = std::log(1.0 / options.tolerance) + 1.0;
  auto coarse = quadrature.risk(digits);
  while (!coarse) {
    digits *= 0.85;
    if (digits < kFewestDigits) return std::nullopt;
    coarse = quadrature.risk(digits);
  }
  BayesRisk out;
  out.method = quadrature.method();
  out.error_kind = ErrorKind::refinement;
  const auto take = [&](const Quadrature::Result& fine, double fine_digits,
                        const Quadrature::Result& other) {
    out.risk = fine.risk;
    out.nodes = fine.nodes;
    // The ends left out (bayes.h) may be all there is of a small risk.
    const double ends = 1.5 * std::exp(-fine_digits);
    out.error = 2.0 * std::abs(fine.risk - other.risk) + ends + kRounding;
    out.tolerance_met = out.error <= options.tolerance;
  };
  bool compared = false;
  for (double factor = kFiner;
       factor > kLeastFiner && !out.tolerance_met && digits < kMostDigits;) {
    const auto fine = quadrature.risk(digits * factor);
    if (!fine) {
      factor = std::sqrt(factor);
      continue;
    }
    digits *= factor;
    take(*fine, digits, *coarse);
    compared = true;
    coarse = fine;
  }
  if (!compared) {  // the largest grid there is, and a coarser one to judge it by
    const auto coarser = quadrature.risk(digits / kFiner);
    if (!coarser) return std::nullopt;
    take(*coarse, digits, *coarser);
  }
  return out;
}

/// The mean of several samples.
class Average final : public Evidence {
 public:
  explicit Average(std::vector<std::shared_ptr<const Evidence>> parts) : parts_(std::move(parts)) {}

  EvidenceValues at(double u) const override {
    const auto n = static_cast<double>(parts_.size());
    EvidenceValues mean{0, 0, 0};
    for (const auto& part : parts_) {
      const EvidenceValues value = part->at(u);
      mean.h += value.h / n, mean.Q += value.Q / n, mean.g += value.g / n;
    }
    return mean;
  }
  std::int64_t nodes() const override {
    return parts_.front()->nodes() * static_cast<std::int64_t>(parts_.size());
  }

 private:
  std::vector<std::shared_ptr<const Evidence>> parts_;
};

/// Averages over random tokens, in batches that tell the error and the leading bias.
BayesRisk by_sampling(const GaussianMixture& prior, int L, const BayesOptions& options,
                      const Context& context) {
  constexpr int kBatches = 32;
  constexpr double kSampledDigits = 18.0;
  double cost = 100;  // of a token
  for (const MixtureComponent& component : prior.components()) {
    cost += static_cast<double>(component.mean.size() * (1 + component.factor.cols()));
  }
  const auto count = static_cast<std::int64_t>(std::clamp(5e8 / cost, 4096.0, 1e6)) / kBatches;
  const EvidenceRange range = Level(L, kSampledDigits).range();
  std::vector<std::shared_ptr<const Evidence>> batches(kBatches);
  std::vector<double> risks(kBatches);
  const auto risk_of = [&](std::vector<std::shared_ptr<const Evidence>> parts) {
    Level level(L, kSampledDigits);
    level.add(std::make_unique<Average>(std::move(parts)), 1);
    return level.risk();
  };
  const Workers workers(context);
  workers.for_each_block(kBatches, [&](std::size_t b, int) {
    const std::int64_t first = static_cast<std::int64_t>(b) * count;
    batches[b] = sampled_evidence(prior, range, {options.seed, first, count}, workers);
    risks[b] = risk_of({batches[b]});
  });
  const double all = risk_of(batches);
  double mean = 0, variance = 0;
  for (const double risk : risks) mean += risk / kBatches;
  for (const double risk : risks) variance += (risk - mean) * (risk - mean) / (kBatches - 1);
  BayesRisk out;
  out.risk = all - (mean - all) / (kBatches - 1);  // a bias of 1/tokens cancels
  // Tokens that all agree say nothing of what is rarer than they are.
  out.error =
      std::max(std::sqrt(variance / kBatches), kUnseen / static_cast<double>(kBatches * count));
  out.error_kind = ErrorKind::standard_error;
  out.method = "sampling (random tokens)";
  out.nodes = kBatches * count;
  return out;  // chance is no bound: the tolerance is not met
}

}  // namespace

BayesRisk bayes_risk(const Problem& problem, const BayesOptions& options, const Context& context) {
  check_tolerance(options.tolerance);
  const int L = problem.L();
  if (L == 1) {
    return {0, 0, ErrorKind::refinement, "one token: nothing to find", 0, true};
  }
  const auto* mixture = problem.prior().mixture();
  if (!mixture) {
    throw Error(
        "the Bayes risk needs a prior that is a mixture of Gaussians and atoms: of this one the "
        "evidence of a token is not known");
  }
  if (options.method != BayesMethod::sampling) {
    if (const auto found = by_quadrature(*mixture, L, options, context)) return *found;
  }
  return by_sampling(*mixture, L, options, context);
}

}  // namespace headflow
