#pragma once

// The reduced chain once more, written sample by sample with plain matrices and library random
// numbers, for comparison, and to make mistakes on purpose.

#include <Eigen/QR>
#include <cmath>
#include <random>

#include "sgd/state.h"
#include "support/problems.h"
#include "support/reference_model.h"

namespace headflow::testing {

enum class Fault {
  none,
  frozen_norm,         ///< |X_perp^T w| at its mean instead of random
  degrees_of_freedom,  ///< the part beyond the sample's own axis: a third too many dimensions
  orthogonal,          ///< sums merged without their cross terms
};

class PlainReduced {
 public:
  PlainReduced(const Problem& problem, std::int64_t D, int batch, double rate,
               const SgdState& start, std::uint64_t seed, Fault fault)
      : problem_(problem),
        D_(static_cast<double>(D)),
        batch_(batch),
        rate_(rate),
        state_(start),
        generator_(seed),
        fault_(fault) {}

  void step() {
    const int H = problem_.H(), F = problem_.F();
    Matrix A = Matrix::Zero(H, F + H), V = Matrix::Zero(H, H);
    Vector b = Vector::Zero(H);
    double v = 0;
    for (int i = 0; i < batch_; ++i) {
      const Matrix one = sample(A, b, v);
      V = i == 0 ? one : merge(V, one);
    }
    const double e = rate_ / batch_;
    state_.U -= e * A.leftCols(F);
    Matrix M(H, 2 * H);
    M << state_.Lambda - e * A.rightCols(H), -e * V;
    state_.Lambda = triangular_root(M);
    if (state_.blocks.has("b")) state_.blocks["b"] -= e * b;
    if (state_.blocks.has("v")) state_.blocks["v"][0] -= e * v;
  }
  const SgdState& state() const { return state_; }

 private:
  double normal() { return normal_(generator_); }
  double chi(double dof) {
    return std::sqrt(std::chi_squared_distribution<double>(dof)(generator_));
  }
  Matrix normals(int rows, int columns) {
    Matrix out(rows, columns);
    for (double& x : out.reshaped()) x = normal();
    return out;
  }
  Matrix bartlett(int n, double dof) {
    Matrix T = normals(n, n).triangularView<Eigen::StrictlyLower>();
    for (int i = 0; i < n; ++i) T(i, i) = chi(dof - i);
    return T;
  }
  static Matrix root(const Matrix& K) {  // a zero pivot gives a zero column
    const Eigen::Index n = K.rows();
    Matrix out = Matrix::Zero(n, n);
    for (Eigen::Index j = 0; j < n; ++j) {
      const double pivot = K(j, j) - out.row(j).head(j).squaredNorm();
      if (pivot <= 1e-14 * K(j, j)) continue;
      out(j, j) = std::sqrt(pivot);
      for (Eigen::Index i = j + 1; i < n; ++i) {
        out(i, j) = (K(i, j) - out.row(i).head(j).dot(out.row(j).head(j))) / out(j, j);
      }
    }
    return out;
  }

  /// Adds a sample's gradient along the basis; returns a root of the Gram matrix beyond.
  Matrix sample(Matrix& A, Vector& grad_b, double& grad_v) {
    const int H = problem_.H(), F = problem_.F(), L = problem_.L();
    const double beyond = D_ - F - H;
    Matrix P = normals(L, F + H);
    Vector z(F), theta(F);
    for (double& x : z) x = normal();
    problem_.prior().sample(std::uniform_real_distribution<double>(0, 1)(generator_), z.data(),
                            theta.data());
    P.row(0).head(F) += state_.C.transpose() * theta;
    Matrix k(H, F + H);
    k << state_.U, state_.Lambda;
    const Matrix scores = k * P.transpose();
    Grid<double> chi_hl(static_cast<std::size_t>(H));
    for (int h = 0; h < H; ++h) {
      chi_hl[static_cast<std::size_t>(h)].assign(scores.row(h).begin(), scores.row(h).end());
    }
    const std::string activation(problem_.activation().name());
    const Vector b = b_of(state_);
    const double v = v_of(state_);
    const auto sigma = testing::sigma(activation, chi_hl, {b.begin(), b.end()}, v);
    Matrix u(H, L);  // sigma / v, or the joint weights
    for (int h = 0; h < H; ++h) {
      for (int l = 0; l < L; ++l) {
        const double value = sigma[static_cast<std::size_t>(h)][static_cast<std::size_t>(l)];
        u(h, l) = activation == "softmax-1"   ? value / v
                  : activation == "b-softmax" ? value / H
                                              : value;
      }
    }
    const bool joint = activation == "b-softmax", sink = activation == "softmax-1";
    const double scale = joint ? 1.0 : (sink ? v : 1.0) / H;
    const Vector w = Vector::Unit(L, 0) - scale * u.colwise().sum().transpose();
    const double size = w.norm();
    const Vector w_hat = w / size;
    const double rho = fault_ == Fault::frozen_norm ? std::sqrt(beyond) : chi(beyond);
    const Vector a = fault_ == Fault::frozen_norm ? Vector(Vector::Zero(L)) : Vector(normals(L, 1));
    const Vector t = a + (rho - a.dot(w_hat)) * w_hat;
    const Vector s = (2 / D_) * (P * (P.transpose() * w) + size * rho * t);
    Matrix g(H, L);
    for (int h = 0; h < H; ++h) {
      const double inner = joint ? u.colwise().sum().dot(s) : u.row(h).dot(s);
      g.row(h) = -scale * (u.row(h).array() * (s.transpose().array() - inner)).matrix();
      if (joint) grad_b[h] += g.row(h).sum();
      if (sink) {
        grad_b[h] += scale * (1 - u.row(h).sum()) * inner;
        grad_v -= inner / H;
      }
    }
    A += g * P;
    const Matrix rest = g - (g * w_hat) * w_hat.transpose();
    Matrix M(H, 1 + H);
    const double dof = fault_ == Fault::degrees_of_freedom ? std::ceil(beyond * 4 / 3) : beyond - 1;
    M << g * t, root(rest * rest.transpose()) * bartlett(H, dof);
    return root(M * M.transpose());
  }

  Matrix merge(const Matrix& V1, const Matrix& V2) {
    const int H = problem_.H();
    const double beyond = D_ - problem_.F() - H;
    if (fault_ == Fault::orthogonal) return root(V1 * V1.transpose() + V2 * V2.transpose());
    Matrix N(H, 2 * H);
    N << normals(H, H), bartlett(H, beyond - H);
    const Matrix C = root(N * N.transpose());
    const Matrix Q = C.triangularView<Eigen::Lower>().solve(N);
    Matrix M = V2 * Q;
    M.leftCols(H) += V1;
    return root(M * M.transpose());
  }

  const Problem& problem_;
  double D_;
  int batch_;
  double rate_;
  SgdState state_;
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  Fault fault_;
};

}  // namespace headflow::testing
