#include "analysis/excess_risk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/aligned.h"
#include "core/error.h"
#include "core/index.h"
#include "core/lane_products.h"
#include "core/workers.h"
#include "expectation/sample_store.h"
#include "expectation/sampled_sums.h"
#include "expectation/sobol.h"
#include "theory/log_evidence.h"

namespace headflow {
namespace {

constexpr std::size_t kMostSummed = 64;  // components that every point uses
constexpr std::uint32_t kExcessDraw = kMostDraws - 1;
constexpr double kRoundingOfAttention = 1e-14;
constexpr double kNumbersOfBlock = 1 << 16;     // scores that a block computes: about a millisecond
constexpr std::size_t kBlocksAtOnce = 1 << 12;  // whose sums are kept

/// Sums over points of f = sum_l (a_l - p_l)^2.
struct Sums {
  double value = 0, square = 0;
  Sums& operator+=(const Sums& other) {
    value += other.value;
    square += other.square;
    return *this;
  }
};

class ExcessSampler {
 public:
  ExcessSampler(const Problem& problem, const Point& point, const GaussianMixture& believed,
                const EngineOptions& options, const Context& context);
  ExcessRisk run();

 private:
  /// Of one worker; sized once.
  struct Scratch {
    AlignedVector signal, tokens, noise;   // [1 + F], [L][F], [L][H]
    AlignedVector base, chi, state, mean;  // [H][L], [H][L], as the activation says, [L]
    AlignedVector log_w, evidence;         // [L], as LogEvidence says
    AlignedVector theta, shift;            // [F], [H]
  };

  void plan(const EngineOptions& options, const Context& context);
  void draw(std::int64_t group, Scratch& s) const;
  void set_theta(std::size_t role, Scratch& s) const;
  void add_distance(std::size_t role, Scratch& s, double* sum) const;
  Sums block(std::size_t number, Scratch& s) const;

  const Problem& problem_;
  const Point& point_;
  const GaussianMixture& prior_;
  LogEvidence evidence_;
  int randomisations_;
  std::int64_t points_, groups_, block_groups_ = 1;  // of a randomisation
  bool chosen_;                                      // a coordinate chooses the component
  int signal_dimensions_ = 0, sobol_noise_ = 0;      // coordinates of theta; of the noise
  std::uint64_t seed_;
  Workers workers_;
  ScrambledSobol sobol_;
  std::vector<Scratch> scratch_;
};

const GaussianMixture& mixture_of(const Problem& problem) {
  if (const GaussianMixture* mixture = problem.prior().mixture()) return *mixture;
  throw Error(
      "the excess risk needs a prior that is a mixture of Gaussians and atoms: of this one the "
      "evidence of a token is not known");
}

std::int64_t points_of(const EngineOptions& options) {
  const std::int64_t all = checked_samples(options);
  const int n = checked_randomisations(options);
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>((all + n - 1) / n, kLanes));
  return static_cast<std::int64_t>(std::bit_ceil(wanted));
}

ExcessSampler::ExcessSampler(const Problem& problem, const Point& point,
                             const GaussianMixture& believed, const EngineOptions& options,
                             const Context& context)
    : problem_(problem),
      point_(point),
      prior_(mixture_of(problem)),
      evidence_(believed),
      randomisations_(checked_randomisations(options)),
      points_(points_of(options)),
      groups_(points_ / kLanes),
      chosen_(prior_.components().size() > kMostSummed),
      seed_(options.seed) {
  check_memory(options);
  problem.check(point);
  plan(options, context);
}

void ExcessSampler::plan(const EngineOptions& options, const Context& context) {
  const int L = problem_.L(), H = problem_.H(), F = problem_.F();
  signal_dimensions_ = (chosen_ ? 1 : 0) + (prior_.uses_normals() ? F : 0);
  sobol_noise_ = std::min(L * (F + H), ScrambledSobol::kMostDimensions - signal_dimensions_);
  const int log2_points = std::countr_zero(static_cast<std::uint64_t>(points_));
  const int dimensions = signal_dimensions_ + sobol_noise_;
  const double digits = 8.0 * randomisations_ * dimensions * (kLanes + log2_points);
  if (digits > static_cast<double>(std::max<std::int64_t>(options.memory, 64)) * 0x1p20) {
    throw OptionError("run.randomisations", fmt::format("{}", randomisations_),
                      fmt::format("with so many tokens they take {:.0f} MiB, more than "
                                  "program.memory",
                                  digits / 0x1p20));
  }
  sobol_ = ScrambledSobol(dimensions, log2_points, randomisations_);
  sobol_.scramble({seed_, Purpose::scrambling, kExcessDraw});

  const double roles = chosen_ ? 1 : static_cast<double>(prior_.components().size());
  const double scores = static_cast<double>(kLanes) * L * (F + H + roles * (H + 1));
  while (block_groups_ < groups_ && static_cast<double>(block_groups_) * scores < kNumbersOfBlock) {
    block_groups_ *= 2;  // both are powers of two: it divides groups_
  }
  const std::size_t state = problem_.activation().state_groups(problem_.sizes());
  const double own = static_cast<double>(L) * (F + 3.0 * H + 2) + static_cast<double>(state) +
                     static_cast<double>(evidence_.scratch_groups(L)) + 2.0 * (F + H);
  workers_ = affordable_workers(options, context, 8.0 * kLanes * own);
  scratch_.resize(at(workers_.count()));
  for (Scratch& s : scratch_) {
    const std::size_t heads = at(H), features = at(F), tokens = at(L);
    s.signal = allocate_lanes(1 + features);
    s.tokens = allocate_lanes(tokens * features);
    s.noise = allocate_lanes(tokens * heads);
    s.base = allocate_lanes(tokens * heads);
    s.chi = allocate_lanes(tokens * heads);
    s.state = allocate_lanes(state);
    s.mean = allocate_lanes(tokens);
    s.log_w = allocate_lanes(tokens);
    s.evidence = allocate_lanes(evidence_.scratch_groups(L));
    s.theta = allocate_lanes(features);
    s.shift = allocate_lanes(heads);
  }
}

/// The numbers of eight points: of theta, then chi* and xi of tokens that are all irrelevant.
void ExcessSampler::draw(std::int64_t group, Scratch& s) const {
  const auto randomisation = static_cast<int>(group / groups_);
  const std::int64_t within = group % groups_;
  const int choice = chosen_ ? 1 : 0;
  if (chosen_) sobol_.uniforms(randomisation, within, 0, 1, s.signal.data());
  if (prior_.uses_normals()) {
    sobol_.normals(randomisation, within, choice, problem_.F(), lanes(s.signal.data(), 1));
  }
  const int of_tokens = problem_.L() * problem_.F(), of_noise = problem_.L() * problem_.H();
  const auto fill = [&](int first, int count, double* out) {
    const int regular = std::clamp(sobol_noise_ - first, 0, count);
    if (regular > 0) {
      sobol_.normals(randomisation, within, signal_dimensions_ + first, regular, out);
    }
    if (regular == count) return;
    // chi* and xi share no numbers: they are items of their own.
    const auto items = static_cast<std::uint64_t>(2 * group + (first > 0 ? 1 : 0));
    fill_normals({seed_, Purpose::padding, kExcessDraw}, items, count - regular,
                 lanes(out, regular));
  };
  fill(0, of_tokens, s.tokens.data());
  fill(of_tokens, of_noise, s.noise.data());
}

void ExcessSampler::set_theta(std::size_t role, Scratch& s) const {
  const int F = problem_.F();
  double normals[kMostFeatures] = {}, theta[kMostFeatures];
  for (int i = 0; i < kLanes; ++i) {
    for (int f = 0; prior_.uses_normals() && f < F; ++f) {
      normals[f] = lanes(s.signal.data(), 1 + f)[i];
    }
    const std::size_t component = chosen_ ? prior_.component(s.signal[at(i)]) : role;
    prior_.sample_component(component, normals, theta);
    for (int f = 0; f < F; ++f) lanes(s.theta.data(), f)[i] = theta[f];
  }
}

/// Adds f of eight points to sum[8], for the role's theta on a token of its own.
void ExcessSampler::add_distance(std::size_t role, Scratch& s, double* sum) const {
  const int L = problem_.L(), H = problem_.H(), F = problem_.F();
  const auto relevant = static_cast<std::ptrdiff_t>(role % at(L));
  set_theta(role, s);
  // chi = m chi* + R xi; theta moves one token.
  lane_scores(point_.m.data(), F, H, F, s.theta.data(), 1, 0, s.shift.data());
  s.chi = s.base;
  for (int h = 0; h < H; ++h) {
    double* moved = lanes(s.chi.data(), std::ptrdiff_t{h} * L + relevant);
    for (int i = 0; i < kLanes; ++i) moved[i] += lanes(s.shift.data(), h)[i];
  }
  problem_.activation().forward(problem_.sizes(), point_.blocks.data(), s.chi.data(),
                                s.state.data(), s.mean.data());

  for (int f = 0; f < F; ++f) {
    const double* noise = lanes(s.tokens.data(), relevant * F + f);
    for (int i = 0; i < kLanes; ++i) lanes(s.theta.data(), f)[i] += noise[i];
  }
  double of_relevant[kLanes], top[kLanes], total[kLanes] = {}, squares[kLanes] = {};
  alignas(64) double found[kLanes];
  evidence_.lanewise(s.theta.data(), 1, s.evidence.data(), found);
  double* log_w = s.log_w.data();
  for (int i = 0; i < kLanes; ++i) {
    of_relevant[i] = lanes(log_w, relevant)[i];
    lanes(log_w, relevant)[i] = top[i] = found[i];
  }
  for (int l = 0; l < L; ++l) {
    for (int i = 0; i < kLanes; ++i) top[i] = std::max(top[i], lanes(log_w, l)[i]);
  }
  // The evidence of each token, for its sum; then once more, for the posterior.
  double* w = s.chi.data();  // has at least [L], and is not needed any more
  for (int l = 0; l < L; ++l) {
    for (int i = 0; i < kLanes; ++i) {
      lanes(w, l)[i] = std::exp(lanes(log_w, l)[i] - top[i]);
      total[i] += lanes(w, l)[i];
    }
  }
  for (int l = 0; l < L; ++l) {
    for (int i = 0; i < kLanes; ++i) {
      const double off = lanes(s.mean.data(), l)[i] - lanes(w, l)[i] / total[i];
      squares[i] += off * off;
    }
  }
  const double weight = chosen_ ? 1.0 : prior_.components()[role].weight;
  for (int i = 0; i < kLanes; ++i) {
    sum[i] += weight * squares[i];
    lanes(log_w, relevant)[i] = of_relevant[i];
  }
}

Sums ExcessSampler::block(std::size_t number, Scratch& s) const {
  const int L = problem_.L(), H = problem_.H(), F = problem_.F();
  const std::size_t roles = chosen_ ? 1 : prior_.components().size();
  Sums out;
  for (std::int64_t n = 0; n < block_groups_; ++n) {
    draw(static_cast<std::int64_t>(number) * block_groups_ + n, s);
    lane_scores(point_.R.data(), H, H, H, s.noise.data(), L, 0, s.chi.data());
    lane_scores(point_.m.data(), F, H, F, s.tokens.data(), L, 0, s.base.data());
    for (std::size_t j = 0; j < s.base.size(); ++j) s.base[j] += s.chi[j];
    evidence_.lanewise(s.tokens.data(), L, s.evidence.data(), s.log_w.data());
    double values[kLanes] = {};
    for (std::size_t role = 0; role < roles; ++role) {
      if (block_groups_ == 1) workers_.check_go_on();
      add_distance(role, s, values);
    }
    for (const double value : values) out += {value, value * value};
  }
  return out;
}

ExcessRisk ExcessSampler::run() {
  const std::size_t of_one = at(groups_ / block_groups_), all = of_one * at(randomisations_);
  std::vector<Sums> sums(at(randomisations_)), partial(std::min(all, kBlocksAtOnce));
  for (std::size_t first = 0; first < all; first += kBlocksAtOnce) {
    const std::size_t count = std::min(kBlocksAtOnce, all - first);
    workers_.for_each_block(count, [&](std::size_t number, int worker) {
      partial[number] = block(first + number, scratch_[at(worker)]);
    });
    for (std::size_t i = 0; i < count; ++i) sums[(first + i) / of_one] += partial[i];
  }
  Sums total;
  for (const Sums& one : sums) total += one;
  ExcessRisk out;
  out.points = points_ * randomisations_;
  out.risk = total.value / static_cast<double>(out.points);
  double squares = 0;
  for (const Sums& one : sums) {
    const double off = one.value / static_cast<double>(points_) - out.risk;
    squares += off * off;
  }
  const double rounding = kRoundingOfAttention;
  out.error = std::sqrt(squares / (randomisations_ * (randomisations_ - 1.0))) +
              rounding * (2 * std::sqrt(out.risk) + rounding);
  out.effective_points = total.square > 0 ? total.value * total.value / total.square : 0;
  if (!std::isfinite(out.risk) || !std::isfinite(out.error)) {
    throw NotFinite(
        "the excess risk is not finite at this point: numbers overflow; make the numbers of "
        "[point] or the prior's parameters smaller");
  }
  return out;
}

}  // namespace

ExcessRisk distance_to_posterior(const Problem& problem, const Point& point,
                                 const GaussianMixture& believed, const EngineOptions& options,
                                 const Context& context) {
  if (believed.mean().size() != problem.F()) {
    throw Error(fmt::format("a prior of {} features is not believed of {}", believed.mean().size(),
                            problem.F()));
  }
  return ExcessSampler(problem, point, believed, options, context).run();
}

ExcessRisk excess_risk(const Problem& problem, const Point& point, const EngineOptions& options,
                       const Context& context) {
  return distance_to_posterior(problem, point, mixture_of(problem), options, context);
}

}  // namespace headflow
