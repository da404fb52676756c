#pragma once

// All second derivatives of the loss of token_path.h at once. With x the numbers that the score of
// a head is linear in (z, the mean of a signal, 1), y = (p_h x) and slopes D', D'' of a node,
//   node by node:   sum (D'' - D') y y^T + D' p_h x x^T (one head)
//   through laws:   (d s)^T E'' (d s), d s(u) = sum over nodes of d(y^k e^(-y))/dt y.
// Cost: nodes x (H (F+H+1))^2 multiplications, a tenth of as many products with directions.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/aligned.h"
#include "core/matrix.h"
#include "expectation/factorised/weight_laws.h"

namespace headflow::factorised {

/// Nodes of one token, in groups of 8: arrays written [a] have a rows of `groups` groups.
struct HessianNodes {
  int groups;
  int token;              ///< 0: ordinary, 1: relevant
  double weight;          ///< of a node
  const double* p;        ///< [H] shares of the heads
  const double* x;        ///< [numbers]
  const double* t;        ///< [1]
  const double *D1, *D2;  ///< [1] slopes, times the weight
};

class PathHessian {
 public:
  /// `laws` are the histograms, whose cells are those of the nodes.
  PathHessian(int heads, int numbers, const Histogram* laws);

  void add(const HessianNodes& nodes);
  void add(const PathHessian& other);
  /// In the order [head][number]: node by node only.
  Matrix of_nodes() const;
  /// Of several sums, one after the other, whose numbers are different ones: with what comes
  /// through the laws.
  static Matrix finish(const std::vector<std::unique_ptr<PathHessian>>& sums,
                       const WeightLoss& loss);

 private:
  int heads_, numbers_, size_, wide_, wide_x_;
  std::int64_t first_[2];
  AlignedVector all_, own_;  // [size][wide], [head][numbers][wide_x]
  AlignedVector rows_[2];    // [cell][wide]
  AlignedVector y_, weighted_, x_, xw_, product_;
};

}  // namespace headflow::factorised
