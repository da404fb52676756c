#pragma once

// All second derivatives of the loss of token_path.h: those with respect to what the scores of the
// nodes are linear in (path_hessian.h), carried to m, R and the blocks.

#include "expectation/factorised/path_sums.h"

namespace headflow::factorised {

/// In the order m, R, blocks (so many numbers); false if they are too many for a dense matrix.
bool path_curvature(PathSums& sums, const PathPoint& value, std::size_t blocks, Matrix& out);

/// At R = 0: second derivatives along R, H x H, the same for every column.
Matrix path_curvature_along_R(PathSums& sums, const PathPoint& value);

}  // namespace headflow::factorised
