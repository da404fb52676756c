#pragma once

// Two passes over the nodes of token_path.h: the numbers t of all of them, whose laws give the
// loss, and then, with the slope of the loss at every t, the derivatives with respect to scores.

#include <algorithm>
#include <memory>
#include <vector>

#include "core/aligned.h"
#include "core/lane_products.h"
#include "expectation/factorised/path_kernels.h"
#include "expectation/factorised/path_point.h"
#include "expectation/factorised/quadrature.h"
#include "expectation/factorised/token_nodes.h"
#include "expectation/factorised/weight_laws.h"

namespace headflow::factorised {

/// Components with the same covariance of z.
struct PathGroup {
  int first, count;
  Matrix root;      ///< (I + Sigma_c)^(1/2)
  Matrix turn;      ///< z = turn zeta
  PathGauge gauge;  ///< around A_c where the nodes were placed
};

class PathSums {
 public:
  /// Nodes for points near `here`.
  PathSums(const QuadratureProblem& problem, std::shared_ptr<TokenNodes> nodes,
           const PathPoint& here, int log2_nodes);

  /// The loss, and its derivatives with respect to scores and shifts, or tangents of these.
  void run(const PathPoint& value, const PathPoint* tangent);
  /// The same without tangents, unless this is what was last done.
  void stay_at(const PathPoint& value) {
    if (!(value == bars_at_)) run(value, nullptr);
  }
  /// The gauge must not be far from where the point is: turns are then ambiguous.
  void recentre(const PathPoint& value);

  // Of the last run.
  const WeightLoss& loss() const { return loss_; }
  const Histogram* laws() const { return law_; }  ///< of an ordinary and the relevant token
  const PathGauge::Turned& turned(std::size_t group) const { return turned_[group]; }
  const std::vector<Matrix>& bars() const { return bars_; }  ///< dE/d(A O) of each group
  const Matrix& shift_bars() const { return shift_bars_; }   ///< dE/dshift of each component

  const QuadratureProblem& problem() const { return problem_; }
  const std::vector<PathGroup>& groups() const { return groups_; }
  int dimensions() const { return nodes_->dimensions(); }
  std::int64_t groups_of_nodes() const { return groups_of_nodes_; }
  double node_weight() const { return 0.5 / static_cast<double>(groups_of_nodes_ * kLanes); }

  // For other sums over the nodes.

  struct Block {  ///< of groups of 8 nodes
    std::int64_t from, groups;
    AlignedVector powers;                     // what for_each_chunk keeps
    AlignedVector t, t_tangent;               // [component][sign][group]
    std::vector<Histogram> law, law_tangent;  // of each component
    AlignedVector outer, sum;                 // [group of components][H][d], [component][H]
  };
  struct Scratch {
    AlignedVector chi, tangent, powers, g, bar, bar_tangent, mass, mass_tangent;
    double *rise, *fall;  // e^chi and e^-chi, in `powers` or where they are kept
  };
  struct Scores {
    std::vector<Matrix> A, tangent;       // of each group of components
    Matrix shift, shift_tangent, factor;  // factor: e^shift
    bool with_tangent;
    bool moderate;  // exponentials of scores may be taken as they are
  };

  std::vector<Block>& blocks() { return blocks_; }
  Scratch& scratch(int worker) { return scratch_[at(worker)]; }
  Scores scores_at(const PathPoint& value, const PathPoint* tangent);

  /// Scores of chunks of a block, for one group of components after the other. `again`: at the
  /// point where it was last done, so that exponentials that were kept serve once more.
  template <class Body>
  void for_each_chunk(Block& block, const Scores& scores, Scratch& s, bool again,
                      const Body& body) {
    const int H = problem_.H, d = nodes_->dimensions();
    const bool keep = keep_ && scores.moderate, recall = keep && again;
    s.chi.resize(at(H * kPathChunk * kLanes));
    if (keep) {
      block.powers.resize(2 * groups_.size() * at(block.groups * H * kLanes));
    } else {
      s.powers.resize(2 * s.chi.size());
    }
    if (scores.with_tangent) s.tangent.resize(s.chi.size());
    for (std::int64_t from = 0; from < block.groups; from += kPathChunk) {
      const int count = static_cast<int>(std::min<std::int64_t>(kPathChunk, block.groups - from));
      const float* zeta = zeta_ + (block.from + from) * d * kLanes;
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        s.rise = s.powers.data();
        if (keep) {
          const std::int64_t before = static_cast<std::int64_t>(k) * block.groups + from;
          s.rise = block.powers.data() + 2 * before * H * kLanes;
        }
        s.fall = s.rise + static_cast<std::ptrdiff_t>(H) * count * kLanes;
        if (!recall) {
          lane_scores(scores.A[k].data(), d, H, d, zeta, count, 0, s.chi.data());
          if (scores.moderate) path_powers(H * count, s.chi.data(), s.rise, s.fall);
        }
        if (scores.with_tangent) {
          lane_scores(scores.tangent[k].data(), d, H, d, zeta, count, 0, s.tangent.data());
        }
        body(k, from, count, zeta);
      }
    }
  }

  PathScores scores_of(const Scores& scores, int component, int sign, int count,
                       const Scratch& s) const;
  static std::size_t place(const Block& block, int component, int sign, std::int64_t group) {
    return at(((2 * component + sign) * block.groups + group) * kLanes);
  }

 private:
  template <class Body>
  void for_each_block(const Body& body) {
    problem_.workers->for_each_block(
        blocks_.size(), [&](std::size_t i, int worker) { body(blocks_[i], scratch_[at(worker)]); });
  }

  void weigh(Block& block, const Scores& scores, Scratch& s);
  void look_back(Block& block, const Scores& scores, Scratch& s);
  void collect();

  QuadratureProblem problem_;
  std::shared_ptr<TokenNodes> nodes_;
  int log2_nodes_;
  const float* zeta_ = nullptr;  // as long as nobody asks for more of them
  std::int64_t groups_of_nodes_;
  bool keep_;          // exponentials, from one pass over the nodes to the next
  double common_ = 0;  // of b, which changes nothing
  std::vector<PathGroup> groups_;
  std::vector<Block> blocks_;
  std::vector<Scratch> scratch_;
  Histogram law_[2];
  WeightLoss loss_;
  std::vector<PathGauge::Turned> turned_;  // of each group, at the last point
  std::vector<Matrix> bars_;
  Matrix shift_bars_;
  PathPoint bars_at_;  // where; empty after tangents
};

}  // namespace headflow::factorised
