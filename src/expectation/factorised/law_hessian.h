#pragma once

// From second derivatives of a loss in the laws of the scores to those in the point. The laws are
//   x_(kappa, hk) = m_h^T S_kappa m_k + R_h . R_k    covariances of scores, S_kappa = I +
//   Sigma_kappa x_(c, h)      = m_h . mean_c                     their means
// and the parameters of the activation; each is counted once: components of equal covariance are
// of one kind kappa, and means that are zero at every point are left out. With J = dx/d(point),
//   Hessian = J^T (d^2 E / dx dx) J + sum_x (dE/dx) d^2 x / d(point)^2.

#include <vector>

#include "expectation/factorised/quadrature.h"

namespace headflow::factorised {

class LawCoordinates {
 public:
  /// Where `blocks` is the number of the activation's parameters.
  LawCoordinates(const SignalComponents& signal, int heads, int blocks);

  int size() const { return first_block_ + blocks_; }
  int kinds() const { return static_cast<int>(second_.size()); }
  int kind_of(int component) const { return kind_[at(component)]; }
  int covariance(int kind, int h, int k) const {
    const int i = std::max(h, k), j = std::min(h, k);
    return kind * H_ * (H_ + 1) / 2 + i * (i + 1) / 2 + j;
  }
  /// Negative if this mean is always zero.
  int mean(int component, int h) const {
    const int first = first_mean_[at(component)];
    return first < 0 ? -1 : first + h;
  }
  /// How many means of a score are not.
  int means() const;
  int block(int i) const { return first_block_ + i; }

  /// dE/dx from the derivatives by component.
  Vector gather(const LossAndBars<double>& bars) const;
  /// In the order m, R, parameters; `gradient` and `second` are dE/dx and its derivative.
  Matrix hessian(const Parameters<double>& point, const Vector& gradient,
                 const Matrix& second) const;

 private:
  Matrix jacobian(const Parameters<double>& point) const;

  const SignalComponents& signal_;
  int H_, blocks_, first_block_ = 0;
  std::vector<int> kind_, first_mean_;  // [component]
  std::vector<Matrix> second_;          // [kind] I + Sigma
};

}  // namespace headflow::factorised
