#pragma once

// Points of token_path.h as matrices, and the scores that they give.

#include "core/dual.h"
#include "core/index.h"
#include "expectation/factorised/path_gauge.h"
#include "expectation/factorised/token_laws.h"

namespace headflow::factorised {

/// A point, or a direction, or a gradient, as matrices.
struct PathPoint {
  Matrix m, R;
  Vector b;

  static PathPoint zero(Eigen::Index H, Eigen::Index F) {
    return {Matrix::Zero(H, F), Matrix::Zero(H, H), Vector::Zero(H)};
  }
  bool operator==(const PathPoint& other) const {
    return m.size() == other.m.size() && m == other.m && R == other.R && b == other.b;
  }
};

/// Of every number the part that is wanted: itself, its value or its tangent. `bias`: the block b.
template <class S, class Part>
PathPoint path_point(const Parameters<S>& x, int bias, const Part& part) {
  PathPoint out{Matrix(x.H, x.F), Matrix(x.H, x.H), Vector(x.H)};
  for (std::size_t i = 0; i < x.m.size(); ++i) out.m.data()[i] = part(x.m[i]);
  for (std::size_t i = 0; i < x.R.size(); ++i) out.R.data()[i] = part(x.R[i]);
  for (int h = 0; h < x.H; ++h) out.b[h] = part(x.blocks[at(bias + h)]);
  return out;
}

inline PathPoint path_value(const Parameters<double>& x, int bias) {
  return path_point(x, bias, [](double one) { return one; });
}
inline PathPoint path_value(const Parameters<Dual>& x, int bias) {
  return path_point(x, bias, [](const Dual& one) { return one.value; });
}
inline PathPoint path_tangent(const Parameters<Dual>& x, int bias) {
  return path_point(x, bias, [](const Dual& one) { return one.tangent; });
}

/// A_c.
inline Matrix score_matrix(const Matrix& root, const PathPoint& x) {
  Matrix A(x.m.rows(), x.m.cols() + x.R.cols());
  A << x.m * root, x.R;
  return A;
}

/// b + mu_c, one row a component.
inline Matrix score_shifts(const SignalComponents& signal, const PathPoint& x, double common) {
  Matrix out(signal.count(), x.b.size());
  for (int c = 0; c < signal.count(); ++c) {
    out.row(c) = (x.b + x.m * signal.mean[at(c)]).transpose().array() - common;
  }
  return out;
}

/// A derivative with respect to A_c, as one with respect to m and R.
inline void add_scores(const Matrix& root, const Matrix& bar, PathPoint& grad) {
  const Eigen::Index F = root.rows();
  grad.m += bar.leftCols(F) * root;
  grad.R += bar.rightCols(bar.cols() - F);
}

}  // namespace headflow::factorised
