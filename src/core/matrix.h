#pragma once

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

namespace headflow {

/// Row-major, as in configuration files, result files and numpy.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// The positive semidefinite square root of a symmetric matrix; eigenvalues below 0 count as 0.
inline Matrix positive_square_root(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(0.5 * (symmetric + symmetric.transpose()));
  const Vector root = eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt();
  return eigen.eigenvectors() * root.asDiagonal() * eigen.eigenvectors().transpose();
}

}  // namespace headflow
