// SGD as it is defined, with vectors of dimension D: the reference for reduced.cc. By rotational
// symmetry k* and k may start in the first F + H coordinates.

#include <algorithm>
#include <cmath>

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
        blocks_of_state_.values()[i] -= rate * rest[at(i * kLanes)];
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
    AlignedVector rest;      ///< parameters, loss and its square; only the first lane counts
  };
  struct Scratch {
    AlignedVector x, lanes;
  };

  StreamKey key(Purpose purpose) const { return {setting_.seed, purpose, setting_.run}; }
  std::size_t rest_groups() const { return at(problem_.layout()->size()) + 2; }

  /// If it is asked to stop, what it leaves is of no use.
  void run_block(std::int64_t step, std::int64_t k, Block& block, Scratch& s,
                 StopLatch& latch) const {
    const auto H = at(problem_.H()), L = at(problem_.L());
    s.x.resize(L * stride_);
    s.lanes.resize((H * L + 2 * L + problem_.activation().state_groups(problem_.sizes())) * kLanes);
    std::fill(block.gradient.begin(), block.gradient.end(), 0.0);
    std::fill(block.rest.begin(), block.rest.end(), 0.0);
    const std::int64_t from = setting_.batch * k / count_, to = setting_.batch * (k + 1) / count_;
    for (std::int64_t j = from; j < to && latch.goes_on(); ++j) {
      run_sample(static_cast<std::uint64_t>(step * setting_.batch + j), block, s);
    }
  }

  void run_sample(std::uint64_t sample, Block& block, Scratch& s) const {
    const int H = problem_.H(), F = problem_.F(), L = problem_.L();
    const auto D = at(setting_.dimension);
    fill_normals(key(Purpose::sgd_noise), sample, static_cast<int>(at(L) * stride_ / kLanes),
                 s.x.data());
    for (std::size_t t = 0; t < at(L); ++t) {
      std::fill(s.x.begin() + std::ptrdiff_t(t * stride_ + D),
                s.x.begin() + std::ptrdiff_t((t + 1) * stride_), 0.0);
    }
    RandomStream choice(key(Purpose::sgd_signal_choice), sample),
        normals(key(Purpose::sgd_signal), sample);
    Vector z(F), theta(F);
    for (double& value : z) value = normals.normal();
    problem_.prior().sample(choice.uniform(), z.data(), theta.data());
    direct_add(F, stride_, theta.data(), teacher_.data(), s.x.data());

    // The activation's kernels work on eight samples: here on one, in the first lane.
    std::fill(s.lanes.begin(), s.lanes.end(), 0.0);
    double *weights = s.lanes.data(), *mean = weights + at(H) * at(L) * kLanes,
           *pull = mean + at(L) * kLanes, *state = pull + at(L) * kLanes;
    direct_scores(H, L, stride_, heads_.data(), s.x.data(), at(L) * kLanes, kLanes, weights);
    const Activation& activation = problem_.activation();
    const double* parameters = blocks_of_state_.data();
    activation.forward(problem_.sizes(), parameters, weights, state, mean);
    Vector w(L), Gw(L);
    for (int t = 0; t < L; ++t) w[t] = (t == 0 ? 1.0 : 0.0) - mean[at(t) * kLanes];
    direct_gram_product(L, stride_, s.x.data(), w.data(), Gw.data());
    const double scale = 2.0 / static_cast<double>(setting_.dimension);
    for (int t = 0; t < L; ++t) pull[at(t) * kLanes] = scale * Gw[t];
    double* rest = block.rest.data();
    activation.backward(problem_.sizes(), parameters, pull, weights, state, rest);
    direct_outer(H, L, stride_, weights, at(L) * kLanes, kLanes, s.x.data(), block.gradient.data());
    const double loss = 0.5 * scale * w.dot(Gw);
    double* sums = lanes(rest, problem_.layout()->size());
    sums[0] += loss;
    sums[kLanes] += loss * loss;
  }

  const Problem problem_;
  const SgdSetting setting_;
  const Workers& workers_;
  std::size_t stride_ = 0;
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
