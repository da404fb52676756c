// SGD without vectors of dimension D, exact in law.
//
// The state's basis (state.h) has F + H vectors. A token has independent normal coordinates P along
// them, and in the D' = D - F - H dimensions beyond it is a normal vector that the attention does
// not see: it enters the loss, and so the gradient coefficients g of a sample, only through
// X_perp^T w = |w| u, u a normal vector of dimension D'. A chunk of n samples has n such vectors;
// along axes adapted to them they are the rows of a Bartlett triangle T, and given u
//   X_perp = Y + w^ (u - w^T Y)^T     along these n axes, Y normal,
//          = (1 - w^ w^^T) N          beyond, N normal: g N has covariance S = sum g~ g~^T.
// The sum V of g X_perp over the chunk is therefore known along n axes, and beyond them it is a
// square root of S times a normal matrix, of which only the Gram matrix matters: Bartlett again.
// How sums of chunks lie to each other is independent and uniformly distributed (Haar), so their
// Gram matrices can be merged exactly (lane_merge). Eight chunks at a time, one per vector lane.
//
// If D' is so small that these triangles would be singular, the D' coordinates are drawn as they
// are: `rest` axes in common for all samples.

#include <algorithm>
#include <cmath>

#include "core/aligned.h"
#include "core/error.h"
#include "core/index.h"
#include "core/lane_products.h"
#include "sgd/lane_grams.h"
#include "sgd/method.h"

namespace headflow {
namespace {

/// Axes of a chunk: more of them cost L normals each a sample, fewer need more merges.
int chunk_axes(int H, int L) {
  const double merge = H * (H + 1.0) + H * H;  // random numbers of a chunk's triangle and merge
  return std::clamp(static_cast<int>(std::lround(std::sqrt(merge / L))), 2, 16);
}

class Reduced final : public SgdMethod {
 public:
  Reduced(const Problem& problem, const SgdSetting& setting, const SgdState& start,
          const Workers& workers)
      : problem_(problem),
        setting_(setting),
        workers_(workers),
        state_(start),
        signal_(problem.prior_times(start.C.transpose())) {
    const int H = problem.H(), F = problem.F(), L = problem.L();
    const std::int64_t beyond = setting.dimension - F - H;
    if (beyond < 0) {
      throw OptionError("sgd.dim", fmt::format("{}", setting.dimension),
                        fmt::format("must be at least features + heads = {}", F + H));
    }
    axes_ = chunk_axes(H, L);
    if (beyond <= std::max(2 * H, axes_ + H)) {
      rest_ = static_cast<int>(beyond);
      axes_ = 0;
    }
    columns_ = F + H + rest_;
    beyond_ = static_cast<double>(beyond);
    groups_ = (setting.batch + kLanes - 1) / kLanes;
    per_chunk_ = axes_ > 0 ? axes_ : 4;
    chunks_ = (groups_ + per_chunk_ - 1) / per_chunk_;
    const std::size_t preferred = problem.activation().preferred_groups(problem.sizes());
    together_ = preferred > 1;
    const auto of_block = static_cast<std::int64_t>(together_ ? preferred : 64);
    chunks_per_block_ = std::max<std::int64_t>(1, of_block / per_chunk_);
    count_ = (chunks_ + chunks_per_block_ - 1) / chunks_per_block_;
    // So many blocks at once: sums are added in their order, so that the bits do not depend on it.
    const std::int64_t bytes = static_cast<std::int64_t>(sum_groups()) * kLanes * 8;
    const std::int64_t wave =
        std::clamp<std::int64_t>(kWaveBytes / bytes, 2 * std::int64_t{workers.count()}, 4096);
    blocks_.resize(at(std::min(wave, count_)));
    for (Block& block : blocks_) block.sums.resize(sum_groups() * kLanes);
    total_.resize(sum_groups() * kLanes);
    scratch_.resize(at(workers.count()));
    for (Scratch& s : scratch_) {
      const std::size_t slots =
          together_ ? at(std::min(chunks_per_block_ * per_chunk_, groups_)) : 1;
      const std::size_t state = problem.activation().state_groups(problem.sizes());
      s.x.resize(slots * at(L) * at(columns_ + axes_) * kLanes);
      s.weights.resize(slots * at(H) * at(L) * kLanes);
      s.mean.resize(slots * at(L) * kLanes);
      s.residual.resize(slots * at(L) * kLanes);
      s.state.resize(slots * state * kLanes);
      s.theta.assign(at(F + 1) * kLanes + 2 * at(F), 0.0);  // no normals for atoms
      s.normals.resize(chunk_normals(axes_) * kLanes);
      s.choice.resize(at(axes_ + 2 * H) * kLanes);
      s.chunk.resize((triangle(axes_) + at(H * axes_) + 6 * triangle(H)) * kLanes);
      s.merge.resize(merge_scratch(H) * kLanes);
    }
  }

  bool try_step(std::int64_t step, const Context& context, BatchLoss& loss) override {
    const int H = problem_.H(), F = problem_.F();
    W_.resize(H, columns_);
    W_.setZero();
    W_.leftCols(F) = state_.U;
    W_.middleCols(F, H) = state_.Lambda;
    StopLatch latch(context);
    merges_ = 0;
    const auto wave = static_cast<std::int64_t>(blocks_.size());
    for (std::int64_t first = 0; first < count_; first += wave) {
      const std::int64_t n = std::min(wave, count_ - first);
      workers_.for_each_block(at(n), [&](std::size_t i, int worker) {
        run_block(step, first + static_cast<std::int64_t>(i), blocks_[i], scratch_[at(worker)],
                  latch);
      });
      if (latch.stopped()) return false;
      for (std::int64_t i = 0; i < n; ++i) add_block(step, first + i == 0, blocks_[at(i)].sums);
    }
    loss = update(step);
    return true;
  }

  SgdState state() const override { return state_; }

  std::vector<double> save() const override { return packed(state_); }
  void restore(const std::vector<double>& saved) override {
    const std::size_t size = save().size();
    if (saved.size() != size) {
      throw Error(fmt::format("a state of this run has {} numbers, not {}", size, saved.size()));
    }
    SgdState found = unpacked(saved, problem_.H(), problem_.F());
    state_.blocks.values() = found.blocks.values();  // they keep their names
    found.blocks = state_.blocks;
    state_ = std::move(found);
    signal_ = problem_.prior_times(state_.C.transpose());
  }

 private:
  struct Block {
    AlignedVector sums;  ///< [sum_groups][8]: gradient, parameters, loss; then the Gram matrix of V
  };
  struct Scratch {
    AlignedVector x, weights, mean, residual, state;  ///< of each slot
    AlignedVector theta, normals, choice, chunk, merge;
  };
  /// Where the numbers of eight samples are.
  struct Slot {
    double *x, *y, *weights, *mean, *residual, *state;
  };
  /// What is done of the groups of a chunk: all of it, or what stands around the activation.
  enum class Pass { whole, residuals, sums };

  // Layout of a block's sums, in groups.
  std::size_t parameter_sum() const { return at(problem_.H() * columns_); }
  std::size_t loss_sum() const { return parameter_sum() + at(problem_.layout()->size()); }
  std::size_t gram_sum() const { return loss_sum() + 2; }
  std::size_t sum_groups() const { return gram_sum() + triangle(problem_.H()); }

  /// Normals of a chunk: T and the triangle beyond below their diagonals, the merge's square and
  /// triangle, and one for each chi number.
  std::size_t chunk_normals(int axes) const {
    const int H = problem_.H();
    return at(axes * (axes - 1) / 2 + H * (H - 1) + H * H + axes + 2 * H);
  }

  StreamKey key(Purpose purpose) const { return {setting_.seed, purpose, setting_.run}; }

  /// Fills triangles and squares of random numbers from one set of normals and uniforms.
  class RandomTriangles {
   public:
    RandomTriangles(const StreamKey& retry, std::uint64_t group, const double* normals,
                    const double* uniforms)
        : retry_(retry), group_(group), normals_(normals), uniforms_(uniforms) {}

    /// Bartlett's triangle with `dof` degrees of freedom.
    void triangle(int n, double dof, double* out) {
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j, out += kLanes) normal(out);
        lane_chi(retry_, {group_, chi_++}, dof - i, normals_, uniforms_, out);
        normals_ += kLanes;
        uniforms_ += kLanes;
        out += kLanes;
      }
    }
    const double* square(int n) {
      const double* out = normals_;
      normals_ += std::ptrdiff_t{n} * n * kLanes;
      return out;
    }

   private:
    void normal(double* out) {
      std::copy_n(normals_, kLanes, out);
      normals_ += kLanes;
    }
    StreamKey retry_;
    std::uint64_t group_;
    const double *normals_, *uniforms_;
    std::uint64_t chi_ = 0;
  };

  /// Adds the signal to the first token, the relevant one: theta in its basis is C^T theta.
  void add_signal(std::uint64_t group, double* x, Scratch& s) const {
    const int F = problem_.F();
    double *uniform = s.theta.data(), *normals = uniform + kLanes;
    fill_uniforms(key(Purpose::sgd_signal_choice), group, 1, uniform);
    if (problem_.prior().uses_normals()) fill_normals(key(Purpose::sgd_signal), group, F, normals);
    double *z = normals + F * kLanes, *theta = z + F;
    if (together_ && !problem_.prior().uses_normals()) {
      signal_->sample_many(kLanes, uniform, normals);
      for (int j = 0; j < F * kLanes; ++j) x[j % F * kLanes + j / F] += normals[j];
      return;
    }
    for (int i = 0; i < kLanes; ++i) {
      for (int f = 0; f < F; ++f) z[f] = normals[f * kLanes + i];
      signal_->sample(uniform[i], z, theta);
      for (int f = 0; f < F; ++f) x[f * kLanes + i] += theta[f];
    }
  }

  void run_block(std::int64_t step, std::int64_t index, Block& block, Scratch& s,
                 StopLatch& latch) const {
    std::fill(block.sums.begin(), block.sums.end(), 0.0);
    const std::int64_t from = index * chunks_per_block_,
                       to = std::min(from + chunks_per_block_, chunks_);
    const auto each_chunk = [&](Pass pass) {
      for (std::int64_t chunk = from; chunk < to; ++chunk) {
        if (!run_chunk(step, chunk, from, pass, block, s, latch)) return false;
      }
      return true;
    };
    if (!together_) {
      each_chunk(Pass::whole);
      return;
    }
    // The triangles of a chunk are drawn twice, so that the activation has all groups at once.
    const std::int64_t first = from * per_chunk_,
                       groups = std::min(to * per_chunk_, groups_) - first;
    for (std::int64_t i = 0; i < groups; ++i) set_scores(step, first + i, slot(i, s), s);
    const Activation& activation = problem_.activation();
    const double* parameters = state_.blocks.data();
    activation.forward_groups(problem_.sizes(), at(groups), parameters, s.weights.data(),
                              s.state.data(), s.mean.data());
    if (!each_chunk(Pass::residuals)) return;
    activation.backward_groups(problem_.sizes(), at(groups), parameters, s.residual.data(),
                               s.weights.data(), s.state.data(),
                               block.sums.data() + parameter_sum() * kLanes);
    each_chunk(Pass::sums);
  }

  Slot slot(std::int64_t i, Scratch& s) const {
    const std::ptrdiff_t H = problem_.H(), L = problem_.L();
    const auto state =
        static_cast<std::ptrdiff_t>(problem_.activation().state_groups(problem_.sizes()));
    double* x = lanes(s.x.data(), i * L * (columns_ + axes_));
    return {x,
            lanes(x, L * columns_),
            lanes(s.weights.data(), i * H * L),
            lanes(s.mean.data(), i * L),
            lanes(s.residual.data(), i * L),
            lanes(s.state.data(), i * state)};
  }

  /// False if it was asked to stop: what it leaves is of no use.
  bool run_chunk(std::int64_t step, std::int64_t chunk, std::int64_t first, Pass pass, Block& block,
                 Scratch& s, StopLatch& latch) const {
    const int H = problem_.H();
    const std::int64_t from = chunk * per_chunk_, to = std::min(from + per_chunk_, groups_);
    const int axes = axes_ > 0 ? static_cast<int>(to - from) : 0;
    double *T = s.chunk.data(), *known = T + triangle(axes) * kLanes,
           *S = known + at(H * axes) * kLanes, *root = S + triangle(H) * kLanes,
           *wishart = root + triangle(H) * kLanes, *product = wishart + triangle(H) * kLanes,
           *gram = product + triangle(H) * kLanes, *turn_rest = gram + triangle(H) * kLanes;
    const double* turn = nullptr;
    if (axes > 0) {
      const auto group = static_cast<std::uint64_t>(step * chunks_ + chunk);
      fill_normals(key(Purpose::sgd_chunk), group, static_cast<int>(chunk_normals(axes)),
                   s.normals.data());
      fill_uniforms(key(Purpose::sgd_chunk_choice), group, axes + 2 * H, s.choice.data());
      RandomTriangles draw(key(Purpose::sgd_retry), group, s.normals.data(), s.choice.data());
      draw.triangle(axes, beyond_, T);
      draw.triangle(H, beyond_ - axes, wishart);
      draw.triangle(H, beyond_ - H, turn_rest);
      turn = draw.square(H);
      std::fill(known, root, 0.0);  // and S
    }
    for (std::int64_t g = from; g < to; ++g) {
      if (!latch.goes_on()) return false;
      const int i = static_cast<int>(g - from);
      alignas(64) double u[16 * kLanes];
      for (int k = 0; k < axes; ++k) {
        if (k <= i) {
          std::copy_n(T + (triangle(i) + at(k)) * kLanes, kLanes, u + k * kLanes);
        } else {
          std::fill_n(u + k * kLanes, kLanes, 0.0);
        }
      }
      double* sums = block.sums.data();
      const Slot at_slot = slot(together_ ? g - first * per_chunk_ : 0, s);
      if (pass == Pass::whole) set_mean(step, g, at_slot, s);
      if (pass != Pass::sums) set_residual(g, axes, u, sums, at_slot);
      if (pass == Pass::whole) set_gradient(sums, at_slot);
      if (pass != Pass::residuals) add_group(axes, known, S, sums, at_slot);
    }
    if (axes == 0 || pass == Pass::residuals) return true;
    std::fill_n(gram, triangle(H) * kLanes, 0.0);
    lane_add_gram(H, axes, known, gram);
    lane_cholesky(H, S, root);
    lane_triangle_product(H, root, wishart, product);
    lane_add_gram(H, product, gram);
    double* sum = block.sums.data() + gram_sum() * kLanes;
    if (chunk == first) {
      std::copy_n(gram, triangle(H) * kLanes, sum);
    } else {
      lane_merge(H, turn, turn_rest, gram, sum, s.merge.data());
    }
    return true;
  }

  // Eight samples: their scores, their gradient coefficients, and what these add to every sum.

  void set_scores(std::int64_t step, std::int64_t g, const Slot& slot, Scratch& s) const {
    const int H = problem_.H(), L = problem_.L();
    // A chunk that is not full has fewer axes.
    const std::int64_t chunk = g / per_chunk_;
    const auto axes = static_cast<int>(
        axes_ > 0 ? std::min((chunk + 1) * per_chunk_, groups_) - chunk * per_chunk_ : 0);
    const auto group = static_cast<std::uint64_t>(step * groups_ + g);
    fill_normals(key(Purpose::sgd_noise), group, L * (columns_ + axes), slot.x);
    add_signal(group, slot.x, s);
    lane_scores(W_.data(), columns_, H, columns_, slot.x, L, 0, slot.weights);
  }

  void set_mean(std::int64_t step, std::int64_t g, const Slot& slot, Scratch& s) const {
    set_scores(step, g, slot, s);
    problem_.activation().forward(problem_.sizes(), state_.blocks.data(), slot.weights, slot.state,
                                  slot.mean);
  }

  void set_residual(std::int64_t g, int axes, const double* u, double* sums,
                    const Slot& slot) const {
    alignas(64) double active[kLanes];
    for (int i = 0; i < kLanes; ++i) active[i] = g * kLanes + i < setting_.batch ? 1.0 : 0.0;
    lane_residual(problem_.L(), columns_, slot.x, axes, u, slot.y,
                  2.0 / static_cast<double>(setting_.dimension), active, slot.mean, slot.residual,
                  sums + loss_sum() * kLanes);
  }

  void set_gradient(double* sums, const Slot& slot) const {
    problem_.activation().backward(problem_.sizes(), state_.blocks.data(), slot.residual,
                                   slot.weights, slot.state, sums + parameter_sum() * kLanes);
  }

  void add_group(int axes, double* known, double* S, double* sums, const Slot& slot) const {
    const int H = problem_.H(), L = problem_.L();
    lane_outer(H, columns_, columns_, L, 1, slot.weights, 0, slot.x, 0, sums);
    if (axes == 0) return;
    lane_outer(H, axes, axes, L, 1, slot.weights, 0, slot.y, 0, known);
    lane_project(H, L, slot.mean, slot.weights);
    lane_add_gram(H, L, slot.weights, S);
  }

  /// Adds the next partial sum's Gram matrix to the total's: how they lie to each other is random.
  void merge(std::int64_t step, const double* other) {
    if (axes_ == 0) return;
    const int H = problem_.H();
    Scratch& s = scratch_[0];
    const std::int64_t merges_a_step = count_ + 3;  // the lanes of the total take three
    const auto group = static_cast<std::uint64_t>(step * merges_a_step + merges_++);
    const int numbers = H * (H - 1) / 2 + H * H + H;
    fill_normals(key(Purpose::sgd_merge), group, numbers, s.normals.data());
    fill_uniforms(key(Purpose::sgd_merge_choice), group, H, s.choice.data());
    RandomTriangles draw({setting_.seed, Purpose::sgd_retry, setting_.run | kMergeRetry}, group,
                         s.normals.data(), s.choice.data());
    draw.triangle(H, beyond_ - H, s.chunk.data());
    lane_merge(H, draw.square(H), s.chunk.data(), other, total_.data() + gram_sum() * kLanes,
               s.merge.data());
  }

  void add_block(std::int64_t step, bool first, const AlignedVector& sums) {
    if (first) {
      total_ = sums;
      return;
    }
    for (std::size_t j = 0; j < gram_sum() * kLanes; ++j) total_[j] += sums[j];
    merge(step, sums.data() + gram_sum() * kLanes);
  }

  /// Sums over lanes, and the step itself.
  BatchLoss update(std::int64_t step) {
    const int H = problem_.H(), F = problem_.F();
    double* total = total_.data();
    Scratch& s = scratch_[0];
    AlignedVector shifted(triangle(H) * kLanes);
    for (int half = kLanes / 2; half > 0 && axes_ > 0; half /= 2) {
      for (std::size_t j = 0; j < triangle(H); ++j) {
        double* K = total + (gram_sum() + j) * kLanes;
        for (int i = 0; i < kLanes; ++i) {
          shifted[j * kLanes + at(i)] = i < half ? K[i + half] : 0.0;
        }
      }
      merge(step, shifted.data());
    }
    const auto sum = [&](std::size_t group) {
      double out = 0;
      for (std::size_t i = 0; i < kLanes; ++i) out += total[group * kLanes + i];
      return out;
    };
    const double n = static_cast<double>(setting_.batch), rate = setting_.rate / n;
    Matrix gradient(H, columns_), M(H, H + (axes_ > 0 ? H : rest_));
    for (int h = 0; h < H; ++h) {
      for (int k = 0; k < columns_; ++k) gradient(h, k) = sum(at(h * columns_ + k));
    }
    state_.U -= rate * gradient.leftCols(F);
    M.leftCols(H) = state_.Lambda - rate * gradient.middleCols(F, H);
    if (axes_ > 0) {
      lane_cholesky(H, total + gram_sum() * kLanes, s.chunk.data());
      for (int i = 0; i < H; ++i) {
        for (int j = 0; j < H; ++j) {
          M(i, H + j) = j <= i ? -rate * s.chunk[(triangle(i) + at(j)) * kLanes] : 0.0;
        }
      }
    } else {
      M.rightCols(rest_) = -rate * gradient.rightCols(rest_);
    }
    state_.Lambda = triangular_root(M);
    for (const BlockLayout::Entry& e : problem_.layout()->entries()) {
      if (!problem_.trains(e.info.name)) continue;
      for (Eigen::Index i = e.offset; i < e.offset + e.size; ++i) {
        state_.blocks.values()[i] -= rate * sum(parameter_sum() + at(i));
      }
    }
    const double mean = sum(loss_sum()) / n, square = sum(loss_sum() + 1) / n;
    return batch_loss(mean, square, n);
  }

  static constexpr std::uint32_t kMergeRetry = 1u << 23;
  static constexpr std::int64_t kWaveBytes = 1 << 25;

  const Problem problem_;
  const SgdSetting setting_;
  const Workers& workers_;
  SgdState state_;
  std::shared_ptr<const Prior> signal_;  ///< the law of C^T theta
  bool together_ = false;                ///< the activation wants a block at once
  int axes_ = 0, rest_ = 0, columns_ = 0;
  double beyond_ = 0;  ///< D'
  std::int64_t groups_ = 0, per_chunk_ = 0, chunks_ = 0, chunks_per_block_ = 0;
  std::int64_t count_ = 0;   ///< blocks of a step
  std::int64_t merges_ = 0;  ///< of this step, so far
  Matrix W_;
  std::vector<Block> blocks_;  ///< that are computed at once
  AlignedVector total_;
  std::vector<Scratch> scratch_;
};

}  // namespace

std::unique_ptr<SgdMethod> make_reduced(const Problem& problem, const SgdSetting& setting,
                                        const SgdState& start, const Workers& workers) {
  return std::make_unique<Reduced>(problem, setting, start, workers);
}

}  // namespace headflow
