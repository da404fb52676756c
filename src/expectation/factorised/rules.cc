#include "expectation/factorised/rules.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numbers>

#include "core/index.h"

namespace headflow::factorised {
namespace {

/// Nodes and weights from the recurrence coefficients (Golub and Welsch).
Rule from_recurrence(const Vector& diagonal, const Vector& off_diagonal, double mass) {
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  solver.computeFromTridiagonal(diagonal, off_diagonal);
  Rule rule;
  for (Eigen::Index i = 0; i < diagonal.size(); ++i) {
    const double first = solver.eigenvectors()(0, i);
    rule.x.push_back(solver.eigenvalues()[i]);
    rule.w.push_back(mass * first * first);
  }
  return rule;
}

Rule make_gauss_hermite(int n) {
  Vector off(std::max(0, n - 1));
  for (int k = 0; k + 1 < n; ++k) off[k] = std::sqrt(k + 1.0);
  Rule rule = from_recurrence(Vector::Zero(n), off, 1.0);
  for (int i = 0; i < n / 2; ++i) {  // exactly symmetric
    const auto a = at(i), b = at(n - 1 - i);
    rule.x[b] = (rule.x[b] - rule.x[a]) / 2;
    rule.x[a] = -rule.x[b];
    rule.w[a] = rule.w[b] = (rule.w[a] + rule.w[b]) / 2;
  }
  if (n % 2 == 1) rule.x[at(n / 2)] = 0.0;
  return rule;
}

}  // namespace

const Rule& gauss_hermite(int n) {
  static std::array<std::once_flag, kMostGaussHermite + 1> made;
  static std::array<Rule, kMostGaussHermite + 1> rules;
  const auto i = at(n);
  std::call_once(made.at(i), [&] { rules[i] = make_gauss_hermite(n); });
  return rules[i];
}

Rule normal_trapezoid(double step, double reach) {
  const int k = static_cast<int>(std::ceil(reach / step));
  Rule rule;
  double total = 0;
  for (int i = -k; i <= k; ++i) {
    const double z = step * i;
    rule.x.push_back(z);
    rule.w.push_back(std::exp(-z * z / 2));
    total += rule.w.back();
  }
  for (double& w : rule.w) w /= total;
  return rule;
}

int gauss_hermite_size(double sigma, double digits) {
  const double slope = std::max(0.35 * (0.6 + sigma), 0.027 * sigma * sigma * digits);
  const int n = static_cast<int>(std::ceil(3 + digits * slope));
  if (sigma > 0.5) return n;
  // Taylor's series is short: n nodes are exact up to sigma^(2n).
  const double decay = -2 * std::log(std::max(sigma, 1e-9));
  return std::min(n, static_cast<int>(std::ceil((digits + 2) / decay)) + 1);
}

double resolved_frequency(double digits) {
  double w = digits;
  for (int i = 0; i < 20; ++i) w = 2 / std::numbers::pi * (digits + 3 * std::log(std::max(w, 1.0)));
  return w;
}

double normal_rule_size(double sigma, double digits) {
  if (sigma < 2 && gauss_hermite_size(sigma, digits) <= kMostGaussHermite) return kMostGaussHermite;
  const double wave = std::max(std::sqrt(2 * digits), sigma * resolved_frequency(digits));
  return (std::sqrt(2 * digits) + 0.3) * wave / std::numbers::pi + 1;
}

Rule normal_rule(double sigma, double digits) {
  const int gauss = gauss_hermite_size(sigma, digits);
  const double reach = std::sqrt(2 * digits) + 0.3;
  const double wave = std::max(std::sqrt(2 * digits), sigma * resolved_frequency(digits));
  const double step = 2 * std::numbers::pi / wave;
  if (sigma < 2 && gauss <= std::min(2 * reach / step, double(kMostGaussHermite))) {
    return gauss_hermite(gauss);
  }
  return normal_trapezoid(step, reach);
}

Rule gauss_of_measure(const std::vector<double>& x, const std::vector<double>& w, int n) {
  const double largest = *std::max_element(w.begin(), w.end());
  std::vector<double> nodes, weights;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (w[i] <= 1e-18 * largest) continue;
    nodes.push_back(x[i]);
    weights.push_back(w[i]);
  }
  n = std::min(n, static_cast<int>(nodes.size()));
  const Eigen::Map<const Vector> at(nodes.data(), static_cast<Eigen::Index>(nodes.size()));
  const Eigen::Map<const Vector> mass(weights.data(), static_cast<Eigen::Index>(nodes.size()));
  const double total = mass.sum();
  Eigen::MatrixXd basis(at.size(), n);
  Vector diagonal(n), off(std::max(0, n - 1));
  basis.col(0) = (mass / total).cwiseSqrt();
  for (int k = 0; k < n; ++k) {
    Vector next = at.cwiseProduct(basis.col(k));
    diagonal[k] = next.dot(basis.col(k));
    for (int twice = 0; twice < 2; ++twice) {  // full reorthogonalisation: n is small
      const Vector overlap = basis.leftCols(k + 1).transpose() * next;
      next -= basis.leftCols(k + 1) * overlap;
    }
    if (k + 1 == n) break;
    off[k] = next.norm();
    basis.col(k + 1) = next / off[k];
  }
  return from_recurrence(diagonal, off, total);
}

Matrix hermite(const std::vector<double>& x, int count) {
  const auto n = static_cast<Eigen::Index>(x.size());
  Matrix p(count, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double z = x[at(i)];
    double before = 0, now = 1;
    for (int k = 0; k < count; ++k) {
      p(k, i) = now;
      const double next = (z * now - std::sqrt(double(k)) * before) / std::sqrt(k + 1.0);
      before = now;
      now = next;
    }
  }
  return p;
}

}  // namespace headflow::factorised
