#include "expectation/factorised/path_gauge.h"

#include <Eigen/SVD>
#include <cmath>

namespace headflow::factorised {
namespace {

constexpr double kEpsilon = 1e-3;

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
  const Matrix Y = at.scores.transpose() * bar;
  const Matrix Omega = divided(at, Y - Y.transpose());
  // Along dA: O moves by O omega, A O by `scores`, S' = O^T X by dS.
  const Matrix turned = at.O.transpose() * (dA.transpose() * reference_);
  const Matrix omega = divided(at, turned - turned.transpose());
  const Matrix scores = dA * at.O + at.scores * omega;
  const Matrix dS = turned - omega * (at.W * at.s.asDiagonal() * at.W.transpose());
  const Matrix dY = scores.transpose() * bar;
  const Matrix dOmega = divided(at, dY - dY.transpose() - dS * Omega - Omega * dS);
  return (-reference_ * dOmega - (bar - reference_ * Omega) * omega) * at.O.transpose();
}

}  // namespace headflow::factorised
