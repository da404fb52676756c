#pragma once

// Where the nodes of the per-head activations (softmax, softmax-1) go.

#include <optional>

#include "expectation/factorised/quadrature.h"
#include "expectation/factorised/rules.h"

namespace headflow::factorised {

/// How the two-score functions of heads I and J are written as sums of products,
///   G(u, u') = E f(u + x) f(u' + x') = sum_r weight_r A_r(u) B_r(u').
struct PairPlan {
  int I, J;
  /// Mehler: r counts Hermite polynomials, weight_r = rho^r. Good unless |rho| is near 1 at large
  /// variance. Otherwise conditional: r counts values x_r of the first score, B_r is the mean of
  /// f over the second score given x_r.
  bool conditional = false;
  int rank = 0;
  Rule first, second;  ///< conditional: nodes of x / sigma, and of x' given x
};

/// Polynomials beyond the highest that tables of derivatives need.
inline constexpr int kShifts = 3;

struct HeadsPlan {
  int nodes = 0;                ///< in u, for each head
  int ld = 0;                   ///< nodes, padded
  std::vector<double> centre;   ///< [h]
  std::vector<double> u;        ///< [h][ld] u - centre, 0 in the padding
  std::vector<double> e;        ///< [h][ld] e^(u - centre), if that is moderate
  bool moderate = true;         ///< all |u - centre| < kLargestLog
  std::vector<double> weight;   ///< [h][ld], 0 in the padding
  Rule z;                       ///< for one score
  int terms = 0;                ///< Hermite polynomials
  std::vector<double> project;  ///< [terms][z] p_n(z_i) w_i; if folded, of terms + kShifts
  /// z is symmetric, so that even and odd polynomials need half of the nodes each.
  bool folded = false;
  std::vector<PairPlan> pairs;

  /// Work of one evaluation, in values of integrands: tables of one score, then pairs.
  double cost(int heads, int components) const;
  /// Bytes of the tables and of the scratch of a worker.
  double bytes(int heads, int components) const;
};

/// Nothing if it takes more than `most_work` or too much memory.
std::optional<HeadsPlan> plan_heads(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                                    const double* b, double digits);

}  // namespace headflow::factorised
