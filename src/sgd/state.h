#pragma once

// Where SGD is. The vectors k*_f and k_h of dimension D matter only through their overlaps, and
// these through the coordinates of the vectors in an orthonormal basis that is adapted to them:
// its first F vectors span the k*, the next H the rest of the k.

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "model/problem.h"

namespace headflow {

struct SgdState {
  Matrix C;       ///< F x F, lower triangular: k*_f, p = C C^T; does not change
  Matrix U;       ///< H x F: k_h along the first F vectors of the basis
  Matrix Lambda;  ///< H x H: k_h along the next H
  Blocks blocks;  ///< what the activation trains besides

  int heads() const { return static_cast<int>(U.rows()); }
  int features() const { return static_cast<int>(U.cols()); }

  Matrix m() const { return U * C.transpose(); }
  Matrix q() const { return U * U.transpose() + Lambda * Lambda.transpose(); }
  Matrix p() const { return C * C.transpose(); }

  bool all_finite() const {
    return U.allFinite() && Lambda.allFinite() && blocks.values().allFinite();
  }
};

/// All numbers of a state one after the other, for what keeps it; and the state that they are of,
/// its blocks without their names. Throws Error if they are too few.
std::vector<double> packed(const SgdState& state);
SgdState unpacked(const std::vector<double>& numbers, int heads, int features);

/// A draw from the exact law of k* ~ N(0, I/D), k ~ N(0, eta^2 I/D): Bartlett's decomposition.
SgdState initial_state(const Problem& problem, std::int64_t dimension, std::uint64_t seed,
                       std::uint32_t run);

/// The state with given overlaps p = k*.k*, m = k.k* and R R^T = q - m p^-1 m^T (a point as users
/// write it, not in the frame of p).
SgdState state_with(const Matrix& p, const Point& user);
/// The other way round.
Point point_of(const SgdState& state);

/// Lower triangular T (n x n) with T T^T = M M^T, for an n x k matrix, k >= n.
Matrix triangular_root(const Matrix& M);

/// The square root of a chi-square number with dof degrees of freedom.
double random_chi(RandomStream& stream, double dof);

}  // namespace headflow
