#include "expectation/qmc.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/index.h"
#include "core/lane_products.h"
#include "expectation/sampled_sums.h"

namespace headflow {
namespace {

constexpr std::size_t kMostComponents = 64;
/// Relevant tokens over which a single component is spread: one noise draw that serves several
/// tokens costs less than it gains, up to a point. Measured error * sqrt(time) for 1, 2, 4 and 8
/// tokens with a Gaussian prior and softmax, relative to one token:
///   (H, F, L) = (2, 2, 10): 1, 0.99, 0.90, 0.93;  (4, 2, 5): 1, 0.92, 0.90, 0.96;
///   (2, 1, 4): 1, 0.81, 0.69.
/// The components of a mixture do the same for each other.
constexpr int kSpread = 4;

/// The prior as a mixture whose components are all used in every point, or null.
const GaussianMixture* summed_mixture(const Prior& prior) {
  const auto* mixture = prior.mixture();
  return mixture && mixture->components().size() <= kMostComponents ? mixture : nullptr;
}

/// Points of a randomisation: samples / randomisations rounded up to a power of two, at least 8.
int log2_points(std::int64_t samples, int randomisations) {
  const std::int64_t wanted = (samples + randomisations - 1) / randomisations;
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(wanted, kLanes)) - 1);
}

/// The uniform number of a role: those of all roles are stratified.
double turned(double uniform, int role, int roles) {
  const double sum = uniform + static_cast<double>(role) / roles;
  return std::clamp(sum - std::floor(sum), 0x1p-53, 1 - 0x1p-53);
}

}  // namespace

Qmc::Qmc(const Problem& problem, const EngineOptions& options, const Context& context)
    : Engine(problem),
      randomisations_(checked_randomisations(options)),
      log2_points_(log2_points(checked_samples(options), randomisations_)),
      points_(std::int64_t{1} << log2_points_),
      groups_(points_ / kLanes),
      mixture_(summed_mixture(this->problem().prior())),
      atoms_(mixture_ && !mixture_->uses_normals()),
      single_precision_(options.precision == Precision::float32),
      seed_(options.seed),
      theta_bound_(problem.prior().largest(kLargestNormal)) {
  check_memory(options);
  const int L = problem.L(), H = problem.H(), F = problem.F();
  set_roles();

  const int noise = L * (F + H);
  signal_dimensions_ = (mixture_ ? 0 : 1) + (problem.prior().uses_normals() ? F : 0);
  sobol_noise_ = std::min(noise, ScrambledSobol::kMostDimensions - signal_dimensions_);
  const double digits = 8.0 * randomisations_ * (signal_dimensions_ + sobol_noise_) *
                        (kLanes + static_cast<double>(log2_points_));
  if (digits > static_cast<double>(std::max<std::int64_t>(options.memory, 64)) * 0x1p20) {
    throw OptionError("run.randomisations", fmt::format("{}", randomisations_),
                      fmt::format("with so many tokens they take {:.0f} MiB, more than "
                                  "program.memory",
                                  digits / 0x1p20));
  }
  sobol_ = ScrambledSobol(signal_dimensions_ + sobol_noise_, log2_points_, randomisations_);
  const int roles = calls_ * placements_;
  group_size_ = at(noise + (atoms_ ? 0 : roles * F)) * kLanes;

  const auto heads = at(H);
  const std::size_t scores = at(calls_) * at(L) * heads * kLanes;
  const Blocking blocking =
      choose_blocking(groups_, group_size_ * (single_precision_ ? 4 : 8), scores * 8, 0);
  block_groups_ = std::min(blocking.block_groups, groups_);  // powers of two: it divides groups_
  chunk_groups_ = std::min(blocking.chunk_groups, block_groups_);
  const Activation& activation = problem.activation();
  const std::size_t preferred = activation.preferred_groups(problem.sizes());
  together_ = preferred > 1;
  while (together_ && at(chunk_groups_ * roles) < preferred && chunk_groups_ < block_groups_) {
    chunk_groups_ *= 2;
  }
  const auto blocks = at(randomisations_ * (groups_ / block_groups_));
  const int entries = SumLayout(problem).size();
  round_ = std::max<std::size_t>(1, kRoundNumbers / at(entries));
  partial_.resize(std::min(blocks, round_) * at(entries));

  const SampleStore::Shape shape{.groups = randomisations_ * groups_,
                                 .group_size = group_size_,
                                 .spare = at(signal_dimensions_) * kLanes,
                                 .block_groups = block_groups_,
                                 .single_precision = single_precision_,
                                 .memory = options.memory};
  const std::size_t work =
      together_ ? activation.together_scratch_groups(problem.sizes(), at(chunk_groups_) * at(roles))
                : activation.scratch_groups(problem.sizes());
  const std::size_t own = at(chunk_groups_) * scores / kLanes + work + 3 * at(entries);
  workers_ = affordable_workers(options, context,
                                shape.bytes_of_worker() + 8.0 * kLanes * static_cast<double>(own));
  scratch_.resize(at(workers_.count()));
  for (Scratch& s : scratch_) {
    const auto chunk = at(chunk_groups_);
    s.chi = allocate_lanes(chunk * scores / kLanes);
    s.mu = allocate_lanes(heads * (together_ ? chunk * at(roles) : at(placements_)));
    s.g_relevant = allocate_lanes(chunk * heads * at(roles));
    s.work = allocate_lanes(work);
    s.sums = allocate_lanes(at(entries));
  }
  store_ = SampleStore(shape, workers_,
                       [this](std::int64_t group, double* values) { generate(group, values); });
  refresh(0);
}

void Qmc::set_roles() {
  const int L = problem().L(), H = problem().H(), F = problem().F();
  const int K = mixture_ ? static_cast<int>(mixture_->components().size()) : 1;
  const int spread = K * std::max(1, kSpread / K);
  placements_ = std::min({L, kMaxPlacements, spread});
  const int P = placements_;
  calls_ = (K + P - 1) / P;
  const int roles = calls_ * P;
  const auto size = at(roles);
  role_weight_ = allocate_lanes(size);
  atom_theta_ = allocate_lanes(size * at(F));
  atom_mu_ = allocate_lanes(size * at(H));
  atom_factor_ = allocate_lanes(size * at(H));
  for (int role = 0; role < roles; ++role) {
    const int k = role % K;
    const int times = (roles - k + K - 1) / K;  // that component k has a role
    double weight = 1.0 / times;
    if (mixture_) weight *= mixture_->components()[at(k)].weight;
    std::fill_n(lanes(role_weight_.data(), role), kLanes, weight);
    for (int f = 0; atoms_ && f < F; ++f) {
      std::fill_n(lanes(atom_theta_.data(), role * F + f), kLanes,
                  mixture_->components()[at(k)].mean[f]);
    }
  }
}

void Qmc::refresh(std::uint32_t draw) {
  draw_ = draw & 0xFFFFFFu;
  sobol_.scramble({seed_, Purpose::scrambling, draw_});
  store_.fill(workers_);
}

/// Theta of a law of one uniform number, for all roles of eight points.
void Qmc::set_signal(const double* uniform, double* theta) const {
  const int F = problem().F(), roles = calls_ * placements_;
  std::vector<double> uniforms(at(roles * kLanes)), thetas(uniforms.size() * at(F));
  for (int j = 0; j < roles * kLanes; ++j) {
    uniforms[at(j)] = turned(uniform[j % kLanes], j / kLanes, roles);
  }
  problem().prior().sample_many(roles * kLanes, uniforms.data(), thetas.data());
  for (int j = 0; j < roles * kLanes; ++j) {
    for (int f = 0; f < F; ++f) {
      lanes(theta, j / kLanes * F + f)[j % kLanes] = thetas[at(j * F + f)];
    }
  }
}

void Qmc::generate(std::int64_t group, double* values) const {
  const int F = problem().F();
  const int noise = problem().L() * (F + problem().H());
  const auto randomisation = static_cast<int>(group / groups_);
  const std::int64_t within = group % groups_;
  sobol_.normals(randomisation, within, signal_dimensions_, sobol_noise_, values);
  if (sobol_noise_ < noise) {
    fill_normals({seed_, Purpose::padding, draw_}, static_cast<std::uint64_t>(group),
                 noise - sobol_noise_, lanes(values, sobol_noise_));
  }
  if (atoms_) return;

  const Prior& prior = problem().prior();
  const int roles = calls_ * placements_;
  double* theta = lanes(values, noise);
  double* uniform = lanes(theta, roles * F);
  double* normals = lanes(uniform, mixture_ ? 0 : 1);
  if (!mixture_) sobol_.uniforms(randomisation, within, 0, 1, uniform);
  if (prior.uses_normals()) sobol_.normals(randomisation, within, mixture_ ? 0 : 1, F, normals);
  if (!mixture_ && !prior.uses_normals()) {
    set_signal(uniform, theta);
    return;
  }
  double z[kMostFeatures] = {}, one[kMostFeatures];
  for (int i = 0; i < kLanes; ++i) {
    for (int f = 0; prior.uses_normals() && f < F; ++f) z[f] = lanes(normals, f)[i];
    for (int role = 0; role < roles; ++role) {
      if (mixture_) {
        const auto& components = mixture_->components();
        mixture_->sample_component(at(role) % components.size(), z, one);
      } else {
        prior.sample(turned(uniform[i], role, roles), z, one);
      }
      for (int f = 0; f < F; ++f) lanes(theta, role * F + f)[i] = one[f];
    }
  }
}

/// Scores of atoms are the same in every point.
void Qmc::set_atoms() {
  const int H = problem().H(), F = problem().F(), P = placements_;
  for (int c = 0; c < calls_; ++c) {
    lane_scores(weights_.data(), F + H, H, F, lanes(atom_theta_.data(), c * P * F), P, 0,
                lanes(atom_mu_.data(), c * P * H));
  }
  std::transform(atom_mu_.data(), lanes(atom_mu_.data(), calls_ * P * H), atom_factor_.data(),
                 [](double mu) { return std::exp2(mu); });
}

template <class T>
void Qmc::run_block(std::size_t block, int worker, const Point& point, const Request& request) {
  const int L = problem().L(), H = problem().H(), F = problem().F();
  const int K = F + H, P = placements_, C = calls_;
  const SumLayout layout(problem());
  Scratch& scratch = scratch_[at(worker)];
  const T* samples =
      store_.block<T>(static_cast<std::int64_t>(block) * block_groups_, block_groups_, worker);
  double* sums = scratch.sums.data();
  std::fill_n(sums, layout.size() * kLanes, 0.0);
  PlacementBatch work = batch_into(problem(), point, request.second_moment, sums);
  work.placements = P;
  work.scratch = scratch.work.data();
  scratch.batches.clear();
  const double shift = problem().activation().largest_shift(point.blocks);
  const auto step = static_cast<std::ptrdiff_t>(group_size_);
  const std::ptrdiff_t chi_step = std::ptrdiff_t{H} * L * kLanes;
  const std::ptrdiff_t g_step = std::ptrdiff_t{H} * P * kLanes;
  const std::ptrdiff_t theta_step = std::ptrdiff_t{P} * F * kLanes;
  const std::ptrdiff_t noise = std::ptrdiff_t{L} * K * kLanes;

  for (std::int64_t start = 0; start < block_groups_; start += chunk_groups_) {
    const auto groups = static_cast<int>(chunk_groups_);
    const T* chunk = samples + start * step;
    for (int n = 0; n < groups; ++n) {
      const T* x = chunk + n * step;
      double* chi = scratch.chi.data() + n * C * chi_step;
      if (group_size_ > kLongGroup) workers_.check_go_on();
      lane_scores(weights_.data(), K, H, K, x, L, step, chi);
      for (int c = 1; c < C; ++c) std::copy_n(chi, chi_step, chi + c * chi_step);
      for (int c = 0; c < C; ++c) {
        work.chi = chi + c * chi_step;
        work.g_relevant = scratch.g_relevant.data() + (n * C + c) * g_step;
        work.weight = lanes(role_weight_.data(), c * P);
        if (atoms_) {
          work.mu = atom_mu_.data() + c * g_step;
          work.factor = atom_factor_.data() + c * g_step;
        } else {
          double* mu = scratch.mu.data() + (together_ ? (n * C + c) * g_step : 0);
          lane_scores(weights_.data(), K, H, F, x + noise + c * theta_step, P, step, mu);
          work.mu = mu;
        }
        if (together_) {
          scratch.batches.push_back(work);
          continue;
        }
        work.moderate = always_moderate_ || moderate(work.chi, H * L, work.mu, H * P, shift);
        problem().activation().placements(work);
      }
    }
    problem().activation().placements_together(scratch.batches, scratch.work.data());
    scratch.batches.clear();
    double* gradient = lanes(sums, layout.weights());
    for (int c = 0; c < C; ++c) {
      lane_outer(H, K, K, L, groups, scratch.chi.data() + c * chi_step, C * chi_step, chunk, step,
                 gradient);
      const double* g = scratch.g_relevant.data() + c * g_step;
      if (atoms_) {
        lane_outer(H, F, K, P, groups, g, C * g_step, atom_theta_.data() + c * theta_step, 0,
                   gradient);
      } else {
        lane_outer(H, F, K, P, groups, g, C * g_step, chunk + noise + c * theta_step, step,
                   gradient);
      }
    }
  }
  double* out = partial_.data() + block % round_ * at(layout.size());
  for (int j = 0; j < layout.size(); ++j) {
    out[j] = Eigen::Map<Vector>(lanes(sums, j), kLanes).sum();
  }
}

void Qmc::evaluate(const Point& point, const Request& request, Evaluation& out) {
  const SumLayout layout(problem());
  set_weights_in_bits(point, weights_);
  always_moderate_ = always_moderate(problem(), weights_, point, theta_bound_);
  if (atoms_) set_atoms();

  const auto blocks = at(groups_ / block_groups_);  // of a randomisation
  const std::size_t all = blocks * at(randomisations_);
  Matrix means = Matrix::Zero(randomisations_, layout.size());
  for (std::size_t first = 0; first < all; first += round_) {
    const std::size_t count = std::min(round_, all - first);
    workers_.for_each_block(count, [&](std::size_t block, int worker) {
      if (single_precision_) {
        run_block<float>(first + block, worker, point, request);
      } else {
        run_block<double>(first + block, worker, point, request);
      }
    });
    for (std::size_t block = 0; block < count; ++block) {
      means.row(static_cast<Eigen::Index>((first + block) / blocks)) +=
          Eigen::Map<const Eigen::RowVectorXd>(partial_.data() + block * at(layout.size()),
                                               layout.size());
    }
  }
  means /= static_cast<double>(points_);
  const Vector mean = means.colwise().mean();
  const Vector squares = (means.rowwise() - mean.transpose()).cwiseAbs2().colwise().sum();
  const double freedom = randomisations_ * (randomisations_ - 1.0);
  const Vector error = (squares / freedom).cwiseSqrt();

  out.loss = mean[0];
  out.loss_error = error[0];
  out.grad = point_of_sums(problem(), mean);
  if (request.gradient_error) out.grad_error = point_of_sums(problem(), error);
  if (request.second_moment) out.second_moment = second_moment_of_sums(layout, mean);
  check_finite(out);
}

}  // namespace headflow
