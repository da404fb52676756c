#pragma once

// The inner loops of B-softmax, over the nodes of one token's scores, 8 at a time. Every quantity
// may carry a tangent: then the same code gives directional derivatives.

#include <cstddef>

#include "expectation/factorised/kernels.h"

namespace headflow::factorised {

/// Numbers with or without tangents.
struct Numbers {
  double* value;
  double* tangent;  ///< null: none

  Numbers operator+(std::ptrdiff_t n) const { return {value + n, tangent ? tangent + n : nullptr}; }
};

/// A chunk of nodes; `count` is a multiple of 8, nodes beyond the last have weight 0.
struct NodeChunk {
  int heads, dimensions, count;
  const double* zeta;  ///< [dimension][stride]
  std::ptrdiff_t stride;
  const double* weight;  ///< [count]
};

// Below, `given` says whether `e`, `factor` and `scale` are what they are called or, where that
// would over- or underflow, their logarithms.

/// e[h][i] = exp(shift_h + sum_j A[h][j] zeta[j][i]).
void node_exponentials(Given given, const NodeChunk& nodes, Numbers A, Numbers shift, Numbers e);

/// With w_i = sum_h factor_h e[h][i] and y = scale_u w_i, adds to sums[k][u] the sum over nodes
/// of weight_i y^k e^(-y), k = 0, 1, 2. `w` is scratch for `count` numbers.
void node_moments(Given given, const NodeChunk& nodes, Numbers factor, Numbers e, int points,
                  const double* scale, Numbers w, Numbers sums);

/// Phi(t) = sum_u (a0_u + a1_u y + a2_u y^2) e^(-y), y = e^t, t = log(scale_u w_i), and
/// p_h = factor_h e[h][i] / w_i. Adds, summed over nodes with their weights,
///   Phi' p_h                     to mean[h]
///   (Phi'' - Phi') p_h p_k       to cross[h][k], k <= h.
/// Both have 8 numbers for each entry, to be added up. `coefficients` is [6][points]:
/// c1 = a1 - a0, c2 = 2 a2 - a1, c3 = -a2 and c2 - c1, 2 c3 - c2, -c3. `scratch` holds
/// (heads + 3) * count numbers.
void node_adjoints(Given given, const NodeChunk& nodes, Numbers factor, Numbers e, int points,
                   const double* scale, Numbers coefficients, Numbers scratch, Numbers mean,
                   Numbers cross);

}  // namespace headflow::factorised
