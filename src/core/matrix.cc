#include "core/matrix.h"

#include <Eigen/Eigenvalues>

namespace headflow {
namespace {

Eigen::SelfAdjointEigenSolver<Matrix> solve(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(0.5 * (symmetric + symmetric.transpose()));
}

}  // namespace

Matrix positive_square_root(const Matrix& symmetric) {
  const auto eigen = solve(symmetric);
  const Vector root = eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt();
  return eigen.eigenvectors() * root.asDiagonal() * eigen.eigenvectors().transpose();
}

Matrix inverse_positive_square_root(const Matrix& symmetric) {
  const auto eigen = solve(symmetric);
  const Vector root = eigen.eigenvalues().cwiseSqrt().cwiseInverse();
  return eigen.eigenvectors() * root.asDiagonal() * eigen.eigenvectors().transpose();
}

double smallest_eigenvalue(const Matrix& symmetric) { return solve(symmetric).eigenvalues()[0]; }

SymmetricEigen::SymmetricEigen(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  values_ = solver.eigenvalues();
  vectors_ = solver.eigenvectors();
}

}  // namespace headflow
