#pragma once

// The factorised formulas by plain trapezoid sums on fine grids: slow, no cleverness, and no code
// in common with the library. Loss only.

#include <Eigen/Eigenvalues>
#include <cmath>
#include <vector>

#include "model/problem.h"

namespace headflow::testing {

class BruteForce {
 public:
  BruteForce(const Problem& problem, const Point& point) : problem_(problem), point_(point) {
    const auto& prior = *problem.prior().mixture();
    laws_.push_back({1.0, Vector::Zero(problem.H()), point.q()});
    for (const MixtureComponent& c : prior.components()) {
      const Matrix spread = point.m * c.factor;
      laws_.push_back({c.weight, point.m * c.mean, point.q() + spread * spread.transpose()});
    }
    double low = 0, high = 0;  // of any score, beyond 7.5 standard deviations
    for (const Law& law : laws_) {
      for (int h = 0; h < problem.H(); ++h) {
        const double reach = 7.5 * std::sqrt(law.Q(h, h)), shift = joint() ? point["b"][h] : 0.0;
        low = std::min(low, law.mean[h] + shift - reach);
        high = std::max(high, law.mean[h] + shift + reach);
      }
    }
    const double sink = has_sink() ? point["b"].maxCoeff() : 0.0;
    const double from = -std::max(high, sink) - std::log(problem.L() * problem.H()) - 28,
                 to = 4.5 - low;
    for (double u = from; u < to; u += kStep) u_.push_back(u);
  }

  double loss() const { return joint() ? joint_loss() : heads_loss(); }

 private:
  static constexpr double kStep = 0.3, kCell = 0.33;
  struct Law {
    double weight;
    Vector mean;
    Matrix Q;
  };
  using Row = std::vector<double>;

  bool joint() const { return problem_.activation().name() == "b-softmax"; }
  bool has_sink() const { return problem_.activation().name() == "softmax-1"; }

  /// e^(-y) and y e^(-y), y^2 e^(-y) at y = e^t.
  static double moment(int k, double t) {
    if (t > 6.6) return 0.0;
    const double y = std::exp(t), f = std::exp(-y);
    return k == 0 ? f : k == 1 ? y * f : y * y * f;
  }

  /// Trapezoid nodes of N(0, 1) that resolve a score of this deviation.
  static std::vector<std::pair<double, double>> normal(double sigma) {
    std::vector<std::pair<double, double>> out;
    const double step = std::min(0.5, kCell / std::max(sigma, 1e-12));
    double total = 0;
    for (double z = -std::ceil(7.5 / step) * step; z < 7.5 + step; z += step) {
      out.emplace_back(z, std::exp(-z * z / 2));
      total += out.back().second;
    }
    for (auto& node : out) node.second /= total;
    return out;
  }

  /// E[y^k e^(-y)] of one head at each u.
  Row one_score(const Law& law, int h, int k) const {
    Row out(u_.size(), 0.0);
    const double sigma = std::sqrt(law.Q(h, h));
    for (const auto& [z, w] : normal(sigma)) {
      for (std::size_t i = 0; i < u_.size(); ++i)
        out[i] += w * moment(k, u_[i] + law.mean[h] + sigma * z);
    }
    return out;
  }

  /// E[y^k e^(-y) y'^k e^(-y')] of two heads at each (u, u').
  Matrix two_scores(const Law& law, int h, int j, int k) const {
    const auto n = static_cast<Eigen::Index>(u_.size());
    const double sigma = std::sqrt(law.Q(h, h)),
                 slope = law.Q(h, j) / std::max(law.Q(h, h), 1e-300);
    const double rest = std::sqrt(std::max(0.0, law.Q(j, j) - slope * law.Q(h, j)));
    const auto first = normal(sigma), second = normal(rest);
    Matrix A(static_cast<Eigen::Index>(first.size()), n), B = Matrix::Zero(A.rows(), n);
    for (Eigen::Index r = 0; r < A.rows(); ++r) {
      const auto [z, w] = first[static_cast<std::size_t>(r)];
      for (Eigen::Index i = 0; i < n; ++i) {
        const double u = u_[static_cast<std::size_t>(i)];
        A(r, i) = w * moment(k, u + law.mean[h] + sigma * z);
        for (const auto& [s, p] : second) {
          B(r, i) += p * moment(k, u + law.mean[j] + slope * sigma * z + rest * s);
        }
      }
    }
    return A.transpose() * B;
  }

  double heads_loss() const {
    const bool sink = has_sink();
    const double L = problem_.L(), v = sink ? point_["v"][0] : 1.0;
    const int H = problem_.H();
    const auto damp = [&](int h, double u) {
      return sink ? std::exp(-std::exp(std::min(u + point_["b"][h], 6.6))) : 1.0;
    };
    double hits = 0, squares = 0;
    for (int h = 0; h < H; ++h) {
      Row s[2][3];
      for (int k = 0; k < 3; ++k) {
        s[0][k] = one_score(laws_[0], h, k);
        s[1][k].assign(u_.size(), 0.0);
        for (std::size_t c = 1; c < laws_.size(); ++c) {
          const Row row = one_score(laws_[c], h, k);
          for (std::size_t i = 0; i < row.size(); ++i) s[1][k][i] += laws_[c].weight * row[i];
        }
      }
      for (std::size_t i = 0; i < u_.size(); ++i) {
        const double others = std::pow(s[0][0][i], L - 1), w = kStep * damp(h, u_[i]);
        hits += w * s[1][1][i] * others;
        squares += w * s[1][2][i] * others;
        if (L > 1) squares += w * (L - 1) * s[0][2][i] * s[1][0][i] * std::pow(s[0][0][i], L - 2);
      }
      for (int j = 0; j < h; ++j) {
        const Matrix G0 = two_scores(laws_[0], h, j, 0), K0 = two_scores(laws_[0], h, j, 1);
        Matrix G1 = Matrix::Zero(G0.rows(), G0.cols()), K1 = G1;
        for (std::size_t c = 1; c < laws_.size(); ++c) {
          G1 += laws_[c].weight * two_scores(laws_[c], h, j, 0);
          K1 += laws_[c].weight * two_scores(laws_[c], h, j, 1);
        }
        for (Eigen::Index a = 0; a < G0.rows(); ++a) {
          for (Eigen::Index b = 0; b < G0.cols(); ++b) {
            const double w = 2 * kStep * kStep * damp(h, u_[static_cast<std::size_t>(a)]) *
                             damp(j, u_[static_cast<std::size_t>(b)]);
            squares += w * K1(a, b) * std::pow(G0(a, b), L - 1);
            if (L > 1) squares += w * (L - 1) * K0(a, b) * G1(a, b) * std::pow(G0(a, b), L - 2);
          }
        }
      }
    }
    return 1 - 2 * v / H * hits + v * v / (H * H) * squares;
  }

  /// Adds weight times the law of log w over a tensor grid of the principal directions.
  void spread(const Law& law, Eigen::Index direction, Vector score, double weight,
              const Matrix& root, std::vector<std::pair<double, double>>& out) const {
    if (direction == root.cols()) {
      out.emplace_back(std::log((score + point_["b"]).array().exp().sum()), weight);
      return;
    }
    for (const auto& [z, w] : normal(root.col(direction).cwiseAbs().maxCoeff())) {
      if (weight * w < 1e-17) continue;
      spread(law, direction + 1, score + z * root.col(direction), weight * w, root, out);
    }
  }

  double joint_loss() const {
    Row s[2][3];
    for (auto& token : s) {
      for (Row& row : token) row.assign(u_.size(), 0.0);
    }
    for (std::size_t c = 0; c < laws_.size(); ++c) {
      const Eigen::SelfAdjointEigenSolver<Matrix> solver(laws_[c].Q);
      Matrix root(problem_.H(), 0);
      for (Eigen::Index i = 0; i < problem_.H(); ++i) {
        if (solver.eigenvalues()[i] < 1e-14) continue;
        root.conservativeResize(Eigen::NoChange, root.cols() + 1);
        root.col(root.cols() - 1) =
            std::sqrt(solver.eigenvalues()[i]) * solver.eigenvectors().col(i);
      }
      std::vector<std::pair<double, double>> nodes;
      spread(laws_[c], 0, laws_[c].mean, laws_[c].weight, root, nodes);
      for (std::size_t i = 0; i < u_.size(); ++i) {
        for (const auto& [t, w] : nodes) {
          for (int k = 0; k < 3; ++k) s[c > 0][k][i] += w * moment(k, u_[i] + t);
        }
      }
    }
    const double L = problem_.L();
    double sum = 1;
    for (std::size_t i = 0; i < u_.size(); ++i) {
      sum += kStep * (s[1][2][i] - 2 * s[1][1][i]) * std::pow(s[0][0][i], L - 1);
      if (L > 1) sum += kStep * (L - 1) * s[0][2][i] * s[1][0][i] * std::pow(s[0][0][i], L - 2);
    }
    return sum;
  }

  const Problem& problem_;
  const Point& point_;
  std::vector<Law> laws_;
  Row u_;
};

}  // namespace headflow::testing
