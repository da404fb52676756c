// SGD as it is defined, with vectors of dimension D: the reference for reduced.cc. By rotational
// symmetry k* and k may start in the first F + H coordinates.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/aligned.h"
#include "core/error.h"
#include "core/index.h"
#include "sgd/direct_kernels.h"
#include "sgd/method.h"

namespace headflow {
namespace {

class Direct final : public SgdMethod {
 public:
  Direct(const Problem& problem, const SgdSetting& setting, const SgdState& start,
         const Workers& workers)
      : problem_(problem), setting_(setting), workers_(workers), blocks_of_state_(start.blocks) {
    const int H = problem.H(), F = problem.F();
    if (setting.dimension < F + H) {
      throw OptionError("sgd.dim", fmt::format("{}", setting.dimension),
                        fmt::format("must be at least features + heads = {}", F + H));
    }
    stride_ = at((setting.dimension + kLanes - 1) / kLanes * kLanes);
    teacher_.assign(at(F) * stride_, 0.0);
    heads_.assign(at(H) * stride_, 0.0);
    for (int f = 0; f < F; ++f) {
      for (int j = 0; j < F; ++j) teacher_[at(f) * stride_ + at(j)] = start.C(f, j);
    }
    for (int h = 0; h < H; ++h) {
      for (int j = 0; j < F; ++j) heads_[at(h) * stride_ + at(j)] = start.U(h, j);
      for (int j = 0; j < H; ++j) heads_[at(h) * stride_ + at(F + j)] = start.Lambda(h, j);
    }
    next_.resize(heads_.size());
    count_ = std::min<std::int64_t>(kBlocks, setting.batch);
    // So many blocks at once: sums are added in their order, so that the bits do not depend on it.
    const std::int64_t bytes = static_cast<std::int64_t>(heads_.size()) * 8;
    blocks_.resize(
        at(std::min(count_, std::clamp<std::int64_t>(
                                kWaveBytes / bytes,
                                std::min<std::int64_t>(workers.count(), kBlocks), kBlocks))));
    for (Block& block : blocks_) {
      block.gradient.resize(heads_.size());
      block.rest.resize(rest_groups() * kLanes);
    }
    scratch_.resize(at(workers.count()));  // filled by those who work
    const std::size_t preferred = problem.activation().preferred_groups(problem.sizes());
    if (preferred > 1) {
      const std::size_t affordable = kWaveBytes / (at(problem.L()) * stride_ * 8);
      together_ = std::clamp<std::size_t>(affordable, 1, preferred * kLanes);
    }
  }

  bool try_step(std::int64_t step, const Context& context, BatchLoss& loss) override {
    StopLatch latch(context);
    AlignedVector rest(rest_groups() * kLanes, 0.0);
    const double n = static_cast<double>(setting_.batch), rate = setting_.rate / n;
    next_ = heads_;
    const auto wave = static_cast<std::int64_t>(blocks_.size());
    for (std::int64_t first = 0; first < count_; first += wave) {
      const std::int64_t blocks = std::min(wave, count_ - first);
      workers_.for_each_block(at(blocks), [&](std::size_t i, int worker) {
        run_block(step, first + static_cast<std::int64_t>(i), blocks_[i], scratch_[at(worker)],
                  latch);
      });
      if (latch.stopped()) return false;
      for (std::int64_t i = 0; i < blocks; ++i) {
        const Block& block = blocks_[at(i)];
        for (std::size_t j = 0; j < next_.size(); ++j) next_[j] -= rate * block.gradient[j];
        for (std::size_t j = 0; j < rest.size(); ++j) rest[j] += block.rest[j];
      }
    }
    heads_.swap(next_);
    for (const BlockLayout::Entry& e : problem_.layout()->entries()) {
      if (!problem_.trains(e.info.name)) continue;
      for (Eigen::Index i = e.offset; i < e.offset + e.size; ++i) {
        // Where samples come one at a time, only the first lane counts: the others are zero.
        const double* sums = rest.data() + i * kLanes;
        blocks_of_state_.values()[i] -= rate * std::accumulate(sums, sums + kLanes, 0.0);
      }
    }
    const double* sums = rest.data() + problem_.layout()->size() * kLanes;
    const double mean = sums[0] / n, square = sums[kLanes] / n;
    loss = batch_loss(mean, square, n);
    return true;
  }

  SgdState state() const override {
    const auto rows = [&](const AlignedVector& x, int n) {
      return Eigen::Map<const Matrix>(x.data(), n, static_cast<Eigen::Index>(stride_));
    };
    const auto teacher = rows(teacher_, problem_.F());
    const auto heads = rows(heads_, problem_.H());
    const int F = problem_.F();
    SgdState out;
    out.C = teacher.leftCols(F);
    out.U = heads.leftCols(F);  // the teacher lies in the first F coordinates
    out.Lambda = Matrix::Zero(problem_.H(), problem_.H());
    out.Lambda = triangular_root(heads.rightCols(heads.cols() - F));
    out.blocks = blocks_of_state_;
    return out;
  }

  std::vector<double> save() const override {
    std::vector<double> out(heads_.begin(), heads_.end());
    out.insert(out.end(), teacher_.begin(), teacher_.end());
    const Vector& blocks = blocks_of_state_.values();
    out.insert(out.end(), blocks.data(), blocks.data() + blocks.size());
    return out;
  }
  void restore(const std::vector<double>& saved) override {
    const std::size_t size = heads_.size() + teacher_.size() + at(blocks_of_state_.size());
    if (saved.size() != size) {
      throw Error(fmt::format("a state of this run has {} numbers, not {}", size, saved.size()));
    }
    const double* from = saved.data();
    std::copy_n(from, heads_.size(), heads_.begin());
    std::copy_n(from += heads_.size(), teacher_.size(), teacher_.begin());
    std::copy_n(from += teacher_.size(), blocks_of_state_.size(), blocks_of_state_.data());
  }

 private:
  static constexpr std::int64_t kBlocks = 16, kWaveBytes = 1 << 26;

  struct Block {
    AlignedVector gradient;  ///< [H][stride]
    AlignedVector rest;      ///< parameters, loss and its square (these in the first lane)
  };
  struct Scratch {
    AlignedVector x, weights, mean, pull, state;
  };

  StreamKey key(Purpose purpose) const { return {setting_.seed, purpose, setting_.run}; }
  std::size_t rest_groups() const { return at(problem_.layout()->size()) + 2; }

  /// If it is asked to stop, what it leaves is of no use.
  void run_block(std::int64_t step, std::int64_t k, Block& block, Scratch& s,
                 StopLatch& latch) const {
    const auto H = at(problem_.H()), L = at(problem_.L());
    const std::size_t groups = (together_ + kLanes - 1) / kLanes;
    const std::size_t state = problem_.activation().state_groups(problem_.sizes());
    s.x.resize(together_ * L * stride_);
    s.weights.resize(groups * H * L * kLanes);
    s.mean.resize(groups * L * kLanes);
    s.pull.resize(groups * L * kLanes);
    s.state.resize(groups * state * kLanes);
    std::fill(block.gradient.begin(), block.gradient.end(), 0.0);
    std::fill(block.rest.begin(), block.rest.end(), 0.0);
    const std::int64_t from = setting_.batch * k / count_, to = setting_.batch * (k + 1) / count_;
    const auto step_of = static_cast<std::int64_t>(together_);
    for (std::int64_t j = from; j < to && latch.goes_on(); j += step_of) {
      run_samples(step * setting_.batch + j, at(std::min(step_of, to - j)), block, s);
    }
  }

  /// One sample in the first lane of the activation's kernels, which work on eight; or many, for an
  /// activation that wants them, in all lanes.
  void run_samples(std::int64_t first, std::size_t count, Block& block, Scratch& s) const {
    const auto H = at(problem_.H()), L = at(problem_.L());
    for (AlignedVector* one : {&s.weights, &s.mean, &s.pull, &s.state}) {
      std::fill(one->begin(), one->end(), 0.0);
    }
    const auto at_lane = [](AlignedVector& all, std::size_t groups, std::size_t i) {
      return all.data() + i / kLanes * groups * kLanes + i % kLanes;
    };
    const auto x = [&](std::size_t i) { return s.x.data() + i * L * stride_; };
    for (std::size_t i = 0; i < count; ++i) {
      set_tokens(static_cast<std::uint64_t>(first) + i, x(i));
      direct_scores(problem_.H(), problem_.L(), stride_, heads_.data(), x(i), L * kLanes, kLanes,
                    at_lane(s.weights, H * L, i));
    }
    const Activation& activation = problem_.activation();
    const double* parameters = blocks_of_state_.data();
    const std::size_t groups = (count + kLanes - 1) / kLanes;
    double* rest = block.rest.data();
    activation.forward_groups(problem_.sizes(), groups, parameters, s.weights.data(),
                              s.state.data(), s.mean.data());
    for (std::size_t i = 0; i < count; ++i) {
      set_pull(x(i), at_lane(s.mean, L, i), at_lane(s.pull, L, i),
               lanes(rest, problem_.layout()->size()));
    }
    activation.backward_groups(problem_.sizes(), groups, parameters, s.pull.data(),
                               s.weights.data(), s.state.data(), rest);
    for (std::size_t i = 0; i < count; ++i) {
      direct_outer(problem_.H(), problem_.L(), stride_, at_lane(s.weights, H * L, i), L * kLanes,
                   kLanes, x(i), block.gradient.data());
    }
  }

  /// The tokens of a sample, the signal on the first.
  void set_tokens(std::uint64_t sample, double* x) const {
    const int F = problem_.F();
    const auto L = at(problem_.L()), D = at(setting_.dimension);
    fill_normals(key(Purpose::sgd_noise), sample, static_cast<int>(L * stride_ / kLanes), x);
    for (std::size_t t = 0; t < L; ++t) std::fill(x + t * stride_ + D, x + (t + 1) * stride_, 0.0);
    RandomStream choice(key(Purpose::sgd_signal_choice), sample),
        normals(key(Purpose::sgd_signal), sample);
    Vector z(F), theta(F);
    for (double& value : z) value = normals.normal();
    problem_.prior().sample(choice.uniform(), z.data(), theta.data());
    direct_add(F, stride_, theta.data(), teacher_.data(), x);
  }

  /// -d loss / d mean of a sample, in a lane; adds its loss and the square to `sums`.
  void set_pull(const double* x, const double* mean, double* pull, double* sums) const {
    const int L = problem_.L();
    Vector w(L), Gw(L);
    for (int t = 0; t < L; ++t) w[t] = (t == 0 ? 1.0 : 0.0) - mean[at(t) * kLanes];
    direct_gram_product(L, stride_, x, w.data(), Gw.data());
    const double scale = 2.0 / static_cast<double>(setting_.dimension);
    for (int t = 0; t < L; ++t) pull[at(t) * kLanes] = scale * Gw[t];
    const double loss = 0.5 * scale * w.dot(Gw);
    sums[0] += loss;
    sums[kLanes] += loss * loss;
  }

  const Problem problem_;
  const SgdSetting setting_;
  const Workers& workers_;
  std::size_t stride_ = 0;
  std::size_t together_ = 1;  ///< samples that the activation has at once
  AlignedVector teacher_, heads_, next_;
  Blocks blocks_of_state_;
  std::int64_t count_ = 0;     ///< blocks of a step
  std::vector<Block> blocks_;  ///< that are computed at once
  std::vector<Scratch> scratch_;
};

}  // namespace

std::unique_ptr<SgdMethod> make_direct(const Problem& problem, const SgdSetting& setting,
                                       const SgdState& start, const Workers& workers) {
  return std::make_unique<Direct>(problem, setting, start, workers);
}

}  // namespace headflow
