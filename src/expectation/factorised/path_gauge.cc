#include "expectation/factorised/path_gauge.h"

#include <Eigen/SVD>
#include <cmath>

namespace headflow::factorised {
namespace {

constexpr double kEpsilon = 1e-3;
constexpr double kDifference = 3e-4;  // steps of differences, of the size of A

}  // namespace

PathGauge::Turned PathGauge::turn(const Matrix& A) const {
  Matrix X = A.transpose() * reference_;
  X.diagonal().array() += kEpsilon;
  const Eigen::JacobiSVD<Matrix> svd(X, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Turned out{A, svd.matrixU() * svd.matrixV().transpose(), svd.matrixV(), svd.singularValues(), {}};
  out.scores = A * out.O;
  return out;
}

Matrix PathGauge::divided(const Turned& at, const Matrix& antisymmetric) const {
  Matrix inside = at.W.transpose() * antisymmetric * at.W;
  for (Eigen::Index i = 0; i < inside.rows(); ++i) {
    for (Eigen::Index j = 0; j < inside.cols(); ++j) {
      const double sum = at.s[i] + at.s[j];
      inside(i, j) = sum > 0 ? inside(i, j) / sum : 0.0;
    }
  }
  return at.W * inside * at.W.transpose();
}

Matrix PathGauge::tangent(const Turned& at, const Matrix& dA) const {
  const Matrix turned = at.O.transpose() * (dA.transpose() * reference_);
  return dA * at.O + at.scores * divided(at, turned - turned.transpose());
}

Matrix PathGauge::pull_back(const Turned& at, const Matrix& bar) const {
  const Matrix Y = at.scores.transpose() * bar;
  return (bar - reference_ * divided(at, Y - Y.transpose())) * at.O.transpose();
}

Matrix PathGauge::pull_back_slope(const Turned& at, const Matrix& bar, const Matrix& dA) const {
  const double size = dA.norm();
  if (size == 0) return Matrix::Zero(dA.rows(), dA.cols());
  const double step = kDifference * (1 + at.A.norm()) / size;
  const auto moved = [&](double by) -> Matrix {
    return pull_back(turn(at.A + by * step * dA), bar);
  };
  return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step);
}

}  // namespace headflow::factorised
