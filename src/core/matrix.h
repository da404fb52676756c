#pragma once

#include <Eigen/Core>

namespace headflow {

/// Row-major, as in configuration files, result files and numpy.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// The positive semidefinite square root of a symmetric matrix; eigenvalues below 0 count as 0.
Matrix positive_square_root(const Matrix& symmetric);

/// The inverse of that root, for a positive definite matrix.
Matrix inverse_positive_square_root(const Matrix& symmetric);

/// Of a symmetric matrix.
double smallest_eigenvalue(const Matrix& symmetric);

/// Eigenvalues, in rising order, and eigenvectors (columns) of a symmetric matrix, whose lower
/// triangle is read. Eigen's solver, compiled once.
class SymmetricEigen {
 public:
  explicit SymmetricEigen(const Matrix& symmetric);
  const Vector& eigenvalues() const { return values_; }
  const Matrix& eigenvectors() const { return vectors_; }

 private:
  Vector values_;
  Matrix vectors_;
};

}  // namespace headflow
