#pragma once

// Nodes for expectations over the r independent normals behind a token's scores.

#include <cstdint>
#include <vector>

#include "core/matrix.h"

namespace headflow::factorised {

/// Weighted nodes in r dimensions; stride is a multiple of 8, padded with weights 0.
struct NodeSet {
  int dimensions = 0;
  std::int64_t count = 0;
  std::ptrdiff_t stride = 0;
  std::vector<double> zeta;    ///< [dimension][stride]
  std::vector<double> weight;  ///< [stride]
};

/// A rule for E phi(sum_j scale_j zeta_j ...) with errors of about e^(-digits), phi as smooth as
/// exp(-e^t) in each direction; scales in descending order. Tensor products of one-dimensional
/// rules without negligible corners, or a cubature of degree 3 or 5 (Stroud) for the small
/// directions, whichever takes fewest nodes. Empty if all need more than `most`.
NodeSet score_nodes(const Vector& scales, double digits, std::int64_t most);

}  // namespace headflow::factorised
