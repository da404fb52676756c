#pragma once

// The nodes of token_path.h.

#include <map>

#include "core/aligned.h"
#include "core/matrix.h"

namespace headflow::factorised {

inline constexpr int kMostLog2 = 24;  ///< of their number: digits of the sequence

/// Standard normals in groups of 8 nodes, [group][dimension][8]: a prefix of one scrambled Sobol'
/// sequence, so that more of them contain fewer.
class TokenNodes {
 public:
  explicit TokenNodes(int dimensions) : dimensions_(dimensions) {}

  int dimensions() const { return dimensions_; }
  /// The first 2^log2 of them; at least 8.
  const float* first(int log2);
  /// L^-1, with L L^T the covariance of the first 2^log2 and their mirror images.
  const Matrix& whitening(int log2);
  /// The largest norm of one of them, of all that there are.
  double largest() const { return largest_; }

 private:
  int dimensions_;
  int have_ = 0;  // log2
  double largest_ = 0;
  AlignedArray<float> zeta_;
  std::map<int, Matrix> whitening_;
};

}  // namespace headflow::factorised
