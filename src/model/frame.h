#pragma once

// Hidden directions that are not orthonormal: p_ff' = k*_f . k*_f'. In the orthonormal frame
// e = p^(-1/2) k* of their span the model is that of p = I, with theta -> p^(1/2) theta and
// m -> m p^(-1/2). All computations are done in the frame; what a user writes or reads is
// m_hf = k_h . k*_f, and passes through here.

#include <optional>

#include "model/point.h"
#include "model/prior.h"

namespace headflow {

class Frame {
 public:
  /// Throws OptionError for problem.p unless it is F x F, symmetric and positive definite.
  Frame(const std::optional<Matrix>& p, int features);

  const Matrix& p() const { return p_; }
  const Matrix& root() const { return root_; }  ///< p^(1/2), symmetric
  /// At p = I every function below is the identity, to the bit.
  bool is_identity() const { return identity_; }

  /// The law of p^(1/2) theta.
  std::shared_ptr<const Prior> enter(std::shared_ptr<const Prior> prior) const;
  /// m -> m p^(-1/2), and back.
  Point enter(Point point) const;
  Point leave(Point point) const;
  /// A gradient with respect to the frame's point, as one with respect to m_hf = k_h . k*_f.
  Point leave_gradient(Point gradient) const;
  /// Errors of such a gradient. How they are correlated is not known: their absolute values add.
  Point leave_gradient_error(Point error) const;

 private:
  Matrix p_, root_, inverse_root_;
  bool identity_;
};

}  // namespace headflow
