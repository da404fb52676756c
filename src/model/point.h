#pragma once

#include <cmath>

#include "core/matrix.h"
#include "model/blocks.h"

namespace headflow {

/// The order parameters of the model, or a gradient or an error with respect to them.
///   m       H x F  overlaps of the heads with an orthonormal frame of the hidden directions: with
///                  the directions themselves, m_hf = k_h . k*_f, if they are orthonormal (frame.h)
///   R       H x H  the heads' orthogonal parts in a fixed orthonormal basis (a general
///                  matrix: the loss depends on R R^T only, but the flow moves R freely)
///   blocks         what the activation trains besides: b and v of softmax-1, b of B-softmax, ...
struct Point {
  Matrix m;
  Matrix R;
  Blocks blocks;

  /// Of the same shape, all zero: the neutral element of sums of gradients.
  static Point zero_like(const Point& other) {
    Point out{Matrix::Zero(other.m.rows(), other.m.cols()),
              Matrix::Zero(other.R.rows(), other.R.cols()), other.blocks};
    out.blocks.values().setZero();
    return out;
  }

  int heads() const { return static_cast<int>(m.rows()); }
  int features() const { return static_cast<int>(m.cols()); }
  Eigen::Index size() const { return m.size() + R.size() + blocks.size(); }

  /// The numbers of a block; throws Error if there is none of that name.
  Eigen::Map<Vector> operator[](std::string_view name) { return blocks[name]; }
  Eigen::Map<const Vector> operator[](std::string_view name) const { return blocks[name]; }

  bool all_finite() const { return m.allFinite() && R.allFinite() && blocks.values().allFinite(); }

  /// Euclidean norm over all coordinates.
  double norm() const {
    return std::sqrt(m.squaredNorm() + R.squaredNorm() + blocks.values().squaredNorm());
  }

  /// The largest entry.
  double max() const {
    const double largest = std::max(m.maxCoeff(), R.maxCoeff());
    return blocks.size() > 0 ? std::max(largest, blocks.values().maxCoeff()) : largest;
  }

  /// Head-head overlaps q = m m^T + R R^T.
  Matrix q() const { return m * m.transpose() + R * R.transpose(); }

  /// One flat vector (m, R, blocks), rows first, and back.
  void pack(double* out) const {
    Eigen::Map<Vector>(out, m.size()) = m.reshaped<Eigen::RowMajor>();
    Eigen::Map<Vector>(out + m.size(), R.size()) = R.reshaped<Eigen::RowMajor>();
    Eigen::Map<Vector>(out + m.size() + R.size(), blocks.size()) = blocks.values();
  }
  void unpack(const double* in) {
    m = Eigen::Map<const Matrix>(in, m.rows(), m.cols());
    R = Eigen::Map<const Matrix>(in + m.size(), R.rows(), R.cols());
    blocks.values() = Eigen::Map<const Vector>(in + m.size() + R.size(), blocks.size());
  }
  Vector packed() const {
    Vector out(size());
    pack(out.data());
    return out;
  }

  Point& operator+=(const Point& other) {
    m += other.m;
    R += other.R;
    blocks.values() += other.blocks.values();
    return *this;
  }
  Point& operator*=(double x) {
    m *= x;
    R *= x;
    blocks.values() *= x;
    return *this;
  }
};

}  // namespace headflow
