#pragma once

#include <cmath>

#include "core/matrix.h"

namespace headflow {

/// The order parameters of the model, or a gradient or an error with respect to them.
///   m  H x F  overlaps of the heads with an orthonormal frame of the hidden directions: with
///             the directions themselves, m_hf = k_h . k*_f, if they are orthonormal (frame.h)
///   R  H x H  the heads' orthogonal parts in a fixed orthonormal frame (a general
///             matrix: the loss depends on R R^T only, but the flow moves R freely)
///   b  H      biases (softmax-1, B-softmax)
///   v         global scale (softmax-1)
struct Point {
  Matrix m;
  Matrix R;
  Vector b;
  double v = 1.0;

  /// m = 0, R = 0, b = 0 and v = 0: the neutral element of sums of gradients.
  static Point zero(int heads, int features) {
    return {Matrix::Zero(heads, features), Matrix::Zero(heads, heads), Vector::Zero(heads), 0.0};
  }

  int heads() const { return static_cast<int>(m.rows()); }
  int features() const { return static_cast<int>(m.cols()); }
  Eigen::Index size() const { return m.size() + R.size() + b.size() + 1; }

  bool all_finite() const {
    return m.allFinite() && R.allFinite() && b.allFinite() && v - v == 0.0;
  }

  /// Euclidean norm over all coordinates.
  double norm() const {
    return std::sqrt(m.squaredNorm() + R.squaredNorm() + b.squaredNorm() + v * v);
  }

  /// Head-head overlaps q = m m^T + R R^T.
  Matrix q() const { return m * m.transpose() + R * R.transpose(); }

  /// One flat vector (m, R, b, v), rows first, and back.
  void pack(double* out) const {
    Eigen::Map<Vector>(out, m.size()) = m.reshaped<Eigen::RowMajor>();
    Eigen::Map<Vector>(out + m.size(), R.size()) = R.reshaped<Eigen::RowMajor>();
    Eigen::Map<Vector>(out + m.size() + R.size(), b.size()) = b;
    out[size() - 1] = v;
  }
  void unpack(const double* in) {
    m = Eigen::Map<const Matrix>(in, m.rows(), m.cols());
    R = Eigen::Map<const Matrix>(in + m.size(), R.rows(), R.cols());
    b = Eigen::Map<const Vector>(in + m.size() + R.size(), b.size());
    v = in[size() - 1];
  }
};

}  // namespace headflow
