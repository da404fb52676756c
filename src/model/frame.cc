#include "model/frame.h"

#include "core/error.h"

namespace headflow {
namespace {

/// Below this, relative to the largest entry, an eigenvalue cannot be told from zero.
constexpr double kSmallest = 1e-12;

void check(const Matrix& p, int F) {
  const auto fail = [&](const std::string& rule) {
    throw OptionError("problem.p", parameter_text(p), rule);
  };
  if (p.rows() != F || p.cols() != F) {
    fail(fmt::format("must be a {0} x {0} matrix, as features = {0}", F));
  }
  if (!p.allFinite()) fail("must be finite");
  const double largest = p.cwiseAbs().maxCoeff();
  if ((p - p.transpose()).cwiseAbs().maxCoeff() > 1e-12 * largest) fail("must be symmetric");
  const double smallest = smallest_eigenvalue(p);
  if (!(smallest > kSmallest * largest)) {
    fail(fmt::format("must be positive definite (its smallest eigenvalue is {:.3g})", smallest));
  }
}

}  // namespace

Frame::Frame(const std::optional<Matrix>& p, int features)
    : p_(Matrix::Identity(features, features)), root_(p_), inverse_root_(p_), identity_(true) {
  if (!p) return;
  check(*p, features);
  if (*p == p_) return;
  identity_ = false;
  p_ = *p;
  root_ = positive_square_root(p_);
  inverse_root_ = inverse_positive_square_root(p_);
}

std::shared_ptr<const Prior> Frame::enter(std::shared_ptr<const Prior> prior) const {
  return identity_ ? prior : linear_image(std::move(prior), root_);
}

Point Frame::enter(Point point) const {
  if (!identity_) point.m = point.m * inverse_root_;
  return point;
}

Point Frame::leave(Point point) const {
  if (!identity_) point.m = point.m * root_;
  return point;
}

Point Frame::leave_gradient(Point gradient) const {
  if (!identity_) gradient.m = gradient.m * inverse_root_;
  return gradient;
}

Point Frame::leave_gradient_error(Point error) const {
  if (!identity_) error.m = error.m * inverse_root_.cwiseAbs();
  return error;
}

}  // namespace headflow
