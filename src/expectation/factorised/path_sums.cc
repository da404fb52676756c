#include "expectation/factorised/path_sums.h"

#include <Eigen/SVD>
#include <cmath>

namespace headflow::factorised {
namespace {

constexpr double kMostKept = 16e6;  // bytes of exponentials that are not computed twice
constexpr double kLargestScore = 1e7;
constexpr double kModerate = 300;  // |chi| and |shift|: products of their exponentials are finite

void add_copies(const AlignedVector& copies, std::int64_t cells, auto& sum) {
  sum.assign(at(cells), 0.0);
  for (int k = 0; k < kPathCopies; ++k) {
    for (std::int64_t j = 0; j < cells; ++j) sum[at(j)] += copies[at(k * cells + j)];
  }
}

}  // namespace

PathSums::PathSums(const QuadratureProblem& problem, std::shared_ptr<TokenNodes> nodes,
                   const PathPoint& here, int log2_nodes)
    : problem_(problem),
      nodes_(std::move(nodes)),
      log2_nodes_(log2_nodes),
      groups_of_nodes_((std::int64_t{1} << log2_nodes) / kLanes),
      loss_(problem.L) {
  common_ = here.b.maxCoeff();
  const Matrix white = nodes_->whitening(log2_nodes);
  const SignalComponents& signal = *problem_.signal;
  for (int c = 0; c < signal.count(); c += groups_.back().count) {
    const Matrix root = positive_square_root(signal.second[at(c)]);
    const Matrix A = score_matrix(root, here);
    const Eigen::JacobiSVD<Matrix> svd(A, Eigen::ComputeFullV);
    groups_.push_back(
        {c, signal.atoms ? signal.count() : 1, root, svd.matrixV() * white, PathGauge(A)});
  }
  const std::int64_t block = std::max<std::int64_t>(4 * kPathChunk, groups_of_nodes_ / 64);
  for (std::int64_t from = 0; from < groups_of_nodes_; from += block) {
    blocks_.push_back({from, std::min(block, groups_of_nodes_ - from), {}, {}, {}, {}, {}, {}, {}});
  }
  scratch_.resize(at(problem.workers->count()));
  keep_ = 16.0 * problem.H * static_cast<double>(groups_.size() * at(groups_of_nodes_ * kLanes)) <=
          kMostKept;
}

void PathSums::recentre(const PathPoint& value) {
  for (PathGroup& group : groups_) group.gauge.recentre(score_matrix(group.root, value));
  bars_at_ = {};
}

PathScores PathSums::scores_of(const Scores& scores, int component, int sign, int count,
                               const Scratch& s) const {
  return {problem_.H,
          count,
          sign == 0 ? 1.0 : -1.0,
          s.chi.data(),
          scores.with_tangent ? s.tangent.data() : nullptr,
          !scores.moderate ? nullptr : (sign == 0 ? s.rise : s.fall),
          scores.shift.row(component).data(),
          scores.with_tangent ? scores.shift_tangent.row(component).data() : nullptr,
          scores.factor.row(component).data()};
}

void PathSums::weigh(Block& block, const Scores& scores, Scratch& s) {
  const int C = problem_.signal->count();
  block.t.resize(at(2 * C * block.groups * kLanes));
  if (scores.with_tangent) block.t_tangent.resize(block.t.size());
  for_each_chunk(block, scores, s, false,
                 [&](std::size_t k, std::int64_t from, int count, const float*) {
                   for (int c = groups_[k].first; c < groups_[k].first + groups_[k].count; ++c) {
                     for (int sign = 0; sign < 2; ++sign) {
                       const std::size_t i = place(block, c, sign, from);
                       path_weights(scores_of(scores, c, sign, count, s), block.t.data() + i,
                                    scores.with_tangent ? block.t_tangent.data() + i : nullptr);
                     }
                   }
                 });
  block.law.resize(at(C));
  block.law_tangent.resize(at(C));
  for (int c = 0; c < C; ++c) {
    const std::size_t i = place(block, c, 0, 0);
    const auto count = static_cast<int>(2 * block.groups);
    const Eigen::Map<const Vector> t(block.t.data() + i, count * kLanes);
    const double low = t.minCoeff(), high = t.maxCoeff();
    check_width((high - low) / kCell);
    Histogram& law = block.law[at(c)];
    law.first = static_cast<std::int64_t>(std::floor(low / kCell)) - 2;
    const std::int64_t last = static_cast<std::int64_t>(std::floor(high / kCell)) + 5;
    const auto cells = last - law.first + 1;  // with two that vectors reach over
    s.mass.assign(at(kPathCopies * cells), 0.0);
    if (scores.with_tangent) s.mass_tangent = s.mass;
    path_spread(count, t.data(), scores.with_tangent ? block.t_tangent.data() + i : nullptr,
                law.first, cells, s.mass.data(), s.mass_tangent.data());
    add_copies(s.mass, cells, law.mass);
    if (!scores.with_tangent) continue;
    block.law_tangent[at(c)].first = law.first;
    add_copies(s.mass_tangent, cells, block.law_tangent[at(c)].mass);
  }
}

void PathSums::look_back(Block& block, const Scores& scores, Scratch& s) {
  const int H = problem_.H, d = nodes_->dimensions(), C = problem_.signal->count();
  block.outer.assign(groups_.size() * at(H * d * kLanes), 0.0);
  block.sum.assign(at(C * H * kLanes), 0.0);
  s.g.resize(at(H * kPathChunk * kLanes));
  s.bar.resize(at(kPathChunk * kLanes));
  s.bar_tangent.resize(s.bar.size());
  for_each_chunk(
      block, scores, s, true, [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
        std::fill(s.g.begin(), s.g.end(), 0.0);
        for (int c = groups_[k].first; c < groups_[k].first + groups_[k].count; ++c) {
          const Slopes &slopes = loss_.slopes(c > 0), &moved = loss_.tangent_slopes(c > 0);
          const double scale = problem_.signal->weight[at(c)] * node_weight();
          for (int sign = 0; sign < 2; ++sign) {
            const std::size_t i = place(block, c, sign, from);
            const double* t = block.t.data() + i;
            const double* dt = scores.with_tangent ? block.t_tangent.data() + i : nullptr;
            path_slopes(count, t, dt, slopes.first, slopes.coefficient.data(),
                        dt ? moved.coefficient.data() : nullptr, scale, s.bar.data(),
                        s.bar_tangent.data());
            path_shares(scores_of(scores, c, sign, count, s), t, dt, s.bar.data(),
                        s.bar_tangent.data(), s.g.data(), block.sum.data() + at(c * H * kLanes));
          }
        }
        lane_outer(H, d, d, count, 1, s.g.data(), 0, zeta, 0,
                   block.outer.data() + k * at(H * d * kLanes));
      });
}

PathSums::Scores PathSums::scores_at(const PathPoint& value, const PathPoint* tangent) {
  zeta_ = nodes_->first(log2_nodes_);
  const SignalComponents& signal = *problem_.signal;
  Scores out{{}, {}, score_shifts(signal, value, common_), {}, {}, tangent != nullptr, true};
  const double shift = out.shift.cwiseAbs().maxCoeff();
  double chi = 0;
  for (const PathGroup& group : groups_) {
    const Matrix A = score_matrix(group.root, value);
    chi = std::max(chi, nodes_->largest() * A.rowwise().norm().maxCoeff());
    if (!(chi + shift < kLargestScore)) check_width(HUGE_VAL);  // nor are sums of them finite
    const std::size_t k = out.A.size();
    turned_.resize(groups_.size());
    turned_[k] = group.gauge.turn(A);
    out.A.emplace_back(turned_[k].scores * group.turn);
    if (tangent) {
      out.tangent.emplace_back(group.gauge.tangent(turned_[k], score_matrix(group.root, *tangent)) *
                               group.turn);
    }
  }
  out.moderate = chi < kModerate && shift < kModerate;
  out.factor = out.shift.array().exp();
  if (tangent) out.shift_tangent = score_shifts(signal, *tangent, 0);
  return out;
}

void PathSums::run(const PathPoint& value, const PathPoint* tangent) {
  const SignalComponents& signal = *problem_.signal;
  const Scores scores = scores_at(value, tangent);
  for_each_block([&](Block& block, Scratch& s) { weigh(block, scores, s); });
  Histogram moved[2];
  law_[0] = law_[1] = {};
  for (const Block& block : blocks_) {
    for (int c = 0; c < signal.count(); ++c) {
      const double weight = signal.weight[at(c)] * node_weight();
      law_[c > 0].add(block.law[at(c)], weight);
      if (tangent) moved[c > 0].add(block.law_tangent[at(c)], weight);
    }
  }
  loss_.evaluate(law_, tangent ? moved : nullptr);
  for_each_block([&](Block& block, Scratch& s) { look_back(block, scores, s); });
  collect();
  bars_at_ = tangent ? PathPoint{} : value;
}

/// Sums over blocks.
void PathSums::collect() {
  const int H = problem_.H, d = nodes_->dimensions(), C = problem_.signal->count();
  bars_.clear();
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    Matrix outer = Matrix::Zero(H, d);
    for (const Block& block : blocks_) {
      for (Eigen::Index i = 0; i < outer.size(); ++i) {
        const double* lane = block.outer.data() + (k * at(outer.size()) + at(i)) * kLanes;
        for (int j = 0; j < kLanes; ++j) outer.data()[i] += lane[j];
      }
    }
    bars_.emplace_back(outer * groups_[k].turn.transpose());
  }
  shift_bars_ = Matrix::Zero(C, H);
  for (const Block& block : blocks_) {
    for (int i = 0; i < C * H; ++i) {
      for (int j = 0; j < kLanes; ++j) shift_bars_.data()[i] += block.sum[at(i * kLanes + j)];
    }
  }
}

}  // namespace headflow::factorised
