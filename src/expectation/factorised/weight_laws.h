#pragma once

// The loss of B-softmax from the law of one number of a token, t = log w, w = sum_h e^(chi_h +
// b_h): with s_k(u) = E[ y^k e^(-y) ], y = e^(u + t), for an ordinary (0) and the relevant token
// (1)
//   E = 1 + int [ (s2_1 - 2 s1_1) s0_0^(L-1) + (L-1) s2_0 s0_1 s0_0^(L-2) ] du.
//
// A law is a histogram on the lattice t = g kCell, into which numbers are spread by quintic
// B-splines: a smooth function of every number. The functions y^k e^(-y) of t are replaced by the
// splines that meet them on the lattice, which differ from them by about 1e-8; the integral over u
// is a trapezoid rule of three cells, which errs by 4e-12. Loss and derivatives are those of the
// same discrete function.

#include <cstdint>
#include <vector>

#include "core/dual.h"
#include "core/matrix.h"

namespace headflow::factorised {

inline constexpr double kCell = 0.125;
/// Of both histograms together, from the lowest to the highest: t over 8192 wide.
inline constexpr double kMostCells = 1 << 16;
inline constexpr int kTouched = 6;  ///< cells that a number is spread over, from floor(t/kCell) - 2

/// Polynomials of the splines on a cell: weight k at t = (floor + f) kCell is
/// sum_d spline_polynomials()[d][k] f^d; k >= kTouched is zero.
using SplinePolynomials = double[kTouched][8];
const SplinePolynomials& spline_polynomials();

/// Throws Error if a histogram would have more than kMostCells.
void check_width(double cells);

/// Masses of the cells first, first + 1, ...
struct Histogram {
  std::int64_t first = 0;
  std::vector<double> mass;

  std::int64_t end() const { return first + static_cast<std::int64_t>(mass.size()); }
  /// Adds `scale` times another one.
  void add(const Histogram& other, double scale);
};

/// dE/dt as a polynomial on every cell: at t = (floor + f) kCell the sum over d of
/// coefficient[(floor - first) * 8 + d] f^d, d < kTouched - 1.
struct Slopes {
  std::int64_t first = 0, cells = 0;
  std::vector<double> coefficient;
};

/// The loss as a function of two histograms, of mass one each; tangents may go with them.
class WeightLoss {
 public:
  explicit WeightLoss(int tokens) : tokens_(tokens) {}

  /// `law` and, unless null, `tangent`: [0] of an ordinary token, [1] of the relevant one. Throws
  /// Error if they are too far apart.
  void evaluate(const Histogram* law, const Histogram* tangent);

  Dual loss() const { return loss_; }
  /// How far the shares of all tokens are from summing to one.
  double defect() const { return defect_; }
  /// The derivative with respect to numbers of a token, and its tangent.
  const Slopes& slopes(int token) const { return slopes_[token]; }
  const Slopes& tangent_slopes(int token) const { return tangent_slopes_[token]; }

  /// (d mass)^T E'' (d mass): second derivatives through the histograms of the last evaluation, for
  /// the columns of d mass, [cell][number] of each token.
  Matrix curvature(const Matrix* mass_slopes) const;

 private:
  int tokens_;
  /// Points u = j of some cells each, from the first on.
  std::int64_t first_u_ = 0, count_u_ = 0;
  std::int64_t first_cell_[2] = {0, 0};
  std::vector<double> moments_[2];  // s_k(u), [k][u]
  Dual loss_;
  double defect_ = 0;
  Slopes slopes_[2], tangent_slopes_[2];
};

}  // namespace headflow::factorised
