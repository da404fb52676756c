#include "expectation/monte_carlo.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/index.h"
#include "core/lane_products.h"
#include "core/random.h"
#include "expectation/sampled_sums.h"

namespace headflow {
namespace {

constexpr std::int64_t kFewestBatchGroups = 8;  // at least 64 batches where there are samples

/// The prior as a mixture of at most 8 atoms, or null.
const GaussianMixture* few_atoms(const Prior& prior) {
  const auto* mixture = prior.mixture();
  if (!mixture || mixture->uses_normals() || mixture->components().size() > kLanes) return nullptr;
  return mixture;
}

}  // namespace

MonteCarlo::MonteCarlo(const Problem& problem, const EngineOptions& options, const Context& context)
    : Engine(problem),
      samples_(checked_samples(options)),
      single_precision_(options.precision == Precision::float32),
      seed_(options.seed),
      theta_bound_(problem.prior().largest(kLargestNormal)) {
  check_memory(options);
  const int L = problem.L(), H = problem.H(), F = problem.F();
  const int most = std::min(L, kMaxPlacements);
  atoms_ = few_atoms(this->problem().prior());
  atom_factor_ = Matrix::Zero(H, kLanes);
  atom_theta_ = Matrix::Zero(F, kLanes);
  for (std::size_t k = 0; atoms_ && k < atoms_->components().size(); ++k) {
    atom_theta_.col(static_cast<Eigen::Index>(k)) = atoms_->components()[k].mean;
  }
  placements_ = static_cast<int>(std::clamp<std::int64_t>(samples_ / 32, 1, most));
  draws_ = (samples_ + placements_ - 1) / placements_;
  groups_ = (draws_ + kLanes - 1) / kLanes;
  group_size_ = (at(L) * at(F + H) + at(placements_) * at(atoms_ ? 1 : F)) * kLanes;

  const auto scores = at(L) * at(H) * kLanes;
  const std::size_t bytes = group_size_ * (single_precision_ ? 4 : 8);
  const Blocking blocking = choose_blocking(groups_, bytes, scores * 8, kFewestBatchGroups);
  block_groups_ = blocking.block_groups;
  chunk_groups_ = blocking.chunk_groups;
  const std::size_t preferred = problem.activation().preferred_groups(problem.sizes());
  together_ = preferred > 1;
  while (together_ && at(chunk_groups_ * placements_) < preferred &&
         2 * chunk_groups_ <= block_groups_ &&
         groups_ / (2 * chunk_groups_) >= kFewestBatchGroups) {
    chunk_groups_ *= 2;
  }

  entries_ = SumLayout(problem).size();
  blocks_ = at((groups_ + block_groups_ - 1) / block_groups_);
  round_ = std::max<std::size_t>(1, kRoundNumbers / at(2 * entries_));
  partial_.resize(std::min(blocks_, round_) * 2 * at(entries_));
  weights_.resize(H, F + H);

  const SampleStore::Shape shape{.groups = groups_,
                                 .group_size = group_size_,
                                 .spare = spare(),
                                 .block_groups = block_groups_,
                                 .single_precision = single_precision_,
                                 .memory = options.memory};
  const std::size_t work = work_groups();
  const std::size_t own = at(chunk_groups_) * scores / kLanes + work + 3 * at(entries_);
  workers_ = affordable_workers(options, context,
                                shape.bytes_of_worker() + 8.0 * kLanes * static_cast<double>(own));
  scratch_.resize(at(workers_.count()));
  for (Scratch& s : scratch_) {
    const auto chunk = at(chunk_groups_);
    const auto HP = at(H) * at(placements_);
    s.chi = allocate_lanes(chunk * at(H) * at(L));
    s.mu = allocate_lanes(together_ ? chunk * HP : HP);
    s.theta = allocate_lanes(chunk * at(placements_) * at(F));
    s.g_relevant = allocate_lanes(chunk * HP);
    s.work = allocate_lanes(work);
    s.weight = allocate_lanes((together_ ? chunk : 1) * at(placements_));
    s.inverse_size = allocate_lanes(1);
    s.batch = allocate_lanes(at(entries_));
    s.total = allocate_lanes(at(entries_));
    s.squares = allocate_lanes(at(entries_));
  }
  store_ = SampleStore(shape, workers_,
                       [this](std::int64_t group, double* values) { generate(group, values); });
  store_.fill(workers_);
}

std::size_t MonteCarlo::work_groups() const {
  const Activation& activation = problem().activation();
  if (!together_) return activation.scratch_groups(problem().sizes());
  return activation.together_scratch_groups(problem().sizes(), at(chunk_groups_) * at(placements_));
}

std::size_t MonteCarlo::spare() const { return at(placements_ * (2 * problem().F() + 1)) * kLanes; }

void MonteCarlo::refresh(std::uint32_t draw) {
  draw_ = draw & 0xFFFFFFu;
  store_.fill(workers_);
}

void MonteCarlo::generate(std::int64_t group, double* values) const {
  const int F = problem().F(), P = placements_;
  const Prior& prior = problem().prior();
  const int noise = problem().L() * (F + problem().H());
  const auto item = static_cast<std::uint64_t>(group);

  fill_normals({seed_, Purpose::noise, draw_}, item, noise, values);
  double* signal = values + static_cast<std::ptrdiff_t>(noise) * kLanes;
  double* uniforms = signal + static_cast<std::ptrdiff_t>(P) * F * kLanes;
  double* normals = uniforms + static_cast<std::ptrdiff_t>(P) * kLanes;
  fill_uniforms({seed_, Purpose::signal_choice, draw_}, item, P, uniforms);
  if (prior.uses_normals()) fill_normals({seed_, Purpose::signal, draw_}, item, P * F, normals);
  if (!atoms_ && !prior.uses_normals()) {
    prior.sample_many(P * kLanes, uniforms, normals);
    for (int j = 0; j < P * kLanes; ++j) {
      for (int f = 0; f < F; ++f) {
        signal[(j / kLanes * F + f) * kLanes + j % kLanes] = normals[j * F + f];
      }
    }
    return;
  }
  double z[kMostFeatures] = {}, theta[kMostFeatures];
  for (int p = 0; p < P; ++p) {
    for (int i = 0; i < kLanes; ++i) {
      const double uniform = uniforms[p * kLanes + i];
      if (atoms_) {
        signal[p * kLanes + i] = static_cast<double>(atoms_->component(uniform));
        continue;
      }
      for (int f = 0; f < F; ++f) z[f] = normals[(p * F + f) * kLanes + i];
      prior.sample(uniform, z, theta);
      for (int f = 0; f < F; ++f) signal[(p * F + f) * kLanes + i] = theta[f];
    }
  }
}

/// Scores of the noise and of the signal of a group, the n-th of its chunk: work.chi, work.mu or
/// work.factor.
template <class T>
void MonteCarlo::set_scores(const T* x, int n, bool look_up, Scratch& s,
                            PlacementBatch& work) const {
  const int L = problem().L(), H = problem().H(), F = problem().F(), K = F + H, P = placements_;
  const T* signal = x + static_cast<std::ptrdiff_t>(L) * K * kLanes;
  // The next group comes from L3 or memory: it is fetched along with the work on this one.
  const auto next = static_cast<std::ptrdiff_t>(group_size_);
  double* mu = lanes(s.mu.data(), together_ ? n * H * P : 0);
  work.mu = mu;
  work.chi = lanes(s.chi.data(), n * H * L);
  work.g_relevant = lanes(s.g_relevant.data(), n * H * P);
  work.factor = nullptr;
  lane_scores(weights_.data(), K, H, K, x, L, next, work.chi);
  if (!atoms_) {
    lane_scores(weights_.data(), K, H, F, signal, P, next, mu);
    return;
  }
  double* theta = lanes(s.theta.data(), n * P * F);
  lane_lookup(F, P, atom_theta_.data(), signal, next, 1, F, theta);
  if (look_up) {
    lane_lookup(H, P, atom_factor_.data(), signal, next, P, 1, mu);
    work.factor = mu;
  } else {
    lane_scores(weights_.data(), K, H, F, theta, P, 0, mu);
  }
}

/// Adds to `size` how many samples of a group, the n-th of its chunk, count in each lane, the
/// group's first being number `first`. Returns weights 1 and 0 if not all do, else null.
const double* MonteCarlo::weigh(std::int64_t first, int n, Scratch& s, double* size) const {
  const int P = placements_;
  if (first + kLanes * P <= samples_) {
    for (int i = 0; i < kLanes; ++i) size[i] += P;
    return nullptr;
  }
  double* weight = lanes(s.weight.data(), together_ ? n * P : 0);
  for (int i = 0; i < kLanes; ++i) {
    const std::int64_t left = samples_ - (first + i * P);
    size[i] += static_cast<double>(std::clamp<std::int64_t>(left, 0, P));
    for (int p = 0; p < P; ++p) lanes(weight, p)[i] = p < left ? 1.0 : 0.0;
  }
  return weight;
}

/// Adds the gradient of [m R] of a chunk, whose groups have left theirs of the scores.
template <class T>
void MonteCarlo::add_gradient(const T* chunk, int groups, const Scratch& s,
                              double* gradient) const {
  const int L = problem().L(), H = problem().H(), F = problem().F(), K = F + H, P = placements_;
  const auto step = static_cast<std::ptrdiff_t>(group_size_);
  const std::ptrdiff_t chi_step = std::ptrdiff_t{H} * L * kLanes;
  const std::ptrdiff_t g_step = std::ptrdiff_t{H} * P * kLanes;
  lane_outer(H, K, K, L, groups, s.chi.data(), chi_step, chunk, step, gradient);
  if (atoms_) {
    lane_outer(H, F, K, P, groups, s.g_relevant.data(), g_step, s.theta.data(),
               std::ptrdiff_t{P} * F * kLanes, gradient);
  } else {
    lane_outer(H, F, K, P, groups, s.g_relevant.data(), g_step,
               chunk + std::ptrdiff_t{L} * K * kLanes, step, gradient);
  }
}

template <class T>
void MonteCarlo::run_block(std::size_t block, int worker, const Point& point,
                           const Request& request) {
  workers_.check_go_on();
  const int H = problem().H(), P = placements_;
  const SumLayout layout(problem());
  const Activation& activation = problem().activation();
  const std::int64_t first = static_cast<std::int64_t>(block) * block_groups_;
  const std::int64_t count = std::min(block_groups_, groups_ - first);
  const T* samples = store_.block<T>(first, count, worker);
  Scratch& s = scratch_[at(worker)];

  const int squared = request.gradient_error ? layout.second_moment() : 1;
  const int summed = request.second_moment ? layout.size() : layout.second_moment();
  for (AlignedVector* sums : {&s.batch, &s.total, &s.squares}) {
    std::fill_n(sums->data(), entries_ * kLanes, 0.0);
  }
  PlacementBatch work = batch_into(problem(), point, request.second_moment, s.batch.data());
  work.placements = P;
  work.scratch = s.work.data();

  const double shift = activation.largest_shift(point.blocks);
  s.batches.clear();
  // Only a fast path does without the scores mu themselves.
  const bool look_up =
      atoms_ && a_priori_moderate_ && !request.second_moment && activation.has_fast_placements();

  for (std::int64_t start = 0; start < count; start += chunk_groups_) {
    const auto groups = static_cast<int>(std::min(chunk_groups_, count - start));
    const T* chunk = samples + at(start) * group_size_;
    double size[kLanes] = {};
    for (int n = 0; n < groups; ++n) {
      if (group_size_ > kLongGroup) workers_.check_go_on();
      set_scores(chunk + at(n) * group_size_, n, look_up, s, work);
      work.weight = weigh((first + start + n) * kLanes * P, n, s, size);
      if (together_) {
        s.batches.push_back(work);
        continue;
      }
      work.moderate =
          a_priori_moderate_ || moderate(work.chi, H * problem().L(), s.mu.data(), H * P, shift);
      activation.placements(work);
    }
    activation.placements_together(s.batches, s.work.data());
    s.batches.clear();
    add_gradient(chunk, groups, s, lanes(s.batch.data(), layout.weights()));
    for (int i = 0; i < kLanes; ++i) s.inverse_size[at(i)] = size[i] > 0 ? 1.0 / size[i] : 0.0;
    lane_close_batch(summed, squared, s.inverse_size.data(), s.batch.data(), s.total.data(),
                     s.squares.data());
  }

  double* sums = partial_.data() + block % round_ * 2 * at(entries_);
  double* squares = sums + entries_;
  for (int j = 0; j < entries_; ++j) {
    sums[j] = Eigen::Map<Vector>(lanes(s.total.data(), j), kLanes).sum();
    squares[j] = Eigen::Map<Vector>(lanes(s.squares.data(), j), kLanes).sum();
  }
}

void MonteCarlo::evaluate(const Point& point, const Request& request, Evaluation& out) {
  const int H = problem().H(), F = problem().F();
  const SumLayout layout(problem());
  set_weights_in_bits(point, weights_);
  a_priori_moderate_ = always_moderate(problem(), weights_, point, theta_bound_);
  if (atoms_) {
    for (std::size_t k = 0; k < atoms_->components().size(); ++k) {
      const Vector mu = weights_.leftCols(F) * atoms_->components()[k].mean;
      for (int h = 0; h < H; ++h) atom_factor_(h, static_cast<Eigen::Index>(k)) = std::exp2(mu[h]);
    }
  }

  Vector sums = Vector::Zero(entries_), squares = Vector::Zero(entries_);
  for (std::size_t first = 0; first < blocks_; first += round_) {
    const std::size_t count = std::min(round_, blocks_ - first);
    workers_.for_each_block(count, [&](std::size_t block, int worker) {
      if (single_precision_) {
        run_block<float>(first + block, worker, point, request);
      } else {
        run_block<double>(first + block, worker, point, request);
      }
    });
    for (std::size_t block = 0; block < count; ++block) {
      const double* from = partial_.data() + block * 2 * at(entries_);
      sums += Eigen::Map<const Vector>(from, entries_);
      squares += Eigen::Map<const Vector>(from + entries_, entries_);
    }
  }
  const auto N = static_cast<double>(samples_);
  const Vector mean = sums / N;

  // Batches B_k of n_k samples with sums S_k: sum_k S_k^2/n_k - N mean^2 estimates
  // (number of batches - 1) * N * Var(mean), without bias for any n_k.
  // A batch is one lane of a chunk; the last chunk may have empty lanes.
  const std::int64_t full_chunks = (groups_ - 1) / chunk_groups_;
  const std::int64_t last_draws = draws_ - full_chunks * chunk_groups_ * kLanes;
  const auto batches =
      static_cast<double>(full_chunks * kLanes + std::min<std::int64_t>(last_draws, kLanes));
  const Vector variance = (squares - (N * mean).cwiseProduct(mean)) / ((batches - 1.0) * N);
  const Vector error = variance.cwiseMax(0.0).cwiseSqrt();

  out.loss = mean[0];
  out.loss_error = error[0];
  out.grad = point_of_sums(problem(), mean);
  if (request.gradient_error) out.grad_error = point_of_sums(problem(), error);
  if (request.second_moment) out.second_moment = second_moment_of_sums(layout, mean);
  check_finite(out);
}

MonteCarlo::Sample MonteCarlo::sample(std::int64_t index) const {
  const int L = problem().L(), H = problem().H(), F = problem().F();
  const std::int64_t draw = index / placements_;
  const auto lane = at(draw % kLanes);
  const auto p = static_cast<int>(index % placements_);
  std::vector<double> values(group_size_ + spare());
  generate(draw / kLanes, values.data());
  if (single_precision_) {
    for (double& x : values) x = static_cast<float>(x);
  }
  Sample out{Matrix(L, F + H), p};
  for (int j = 0; j < L * (F + H); ++j) out.x.data()[j] = values[at(j) * kLanes + lane];
  for (int f = 0; f < F; ++f) {
    const int position = L * (F + H) + (atoms_ ? p : p * F + f);
    const double signal = values[at(position) * kLanes + lane];
    out.x(p, f) += atoms_ ? atom_theta_(f, static_cast<Eigen::Index>(signal)) : signal;
  }
  return out;
}

}  // namespace headflow
