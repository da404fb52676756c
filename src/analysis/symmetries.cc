#include "analysis/symmetries.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"

namespace headflow {
namespace {

constexpr double kAlike = 1e-10;  // relative: numbers that differ by rounding
constexpr double kLeast = 1e-8;   // a direction that is none

/// What must vanish for a rotation to keep the prior.
Vector what_changes(const GaussianMixture& prior, const Matrix& A) {
  const Eigen::Index F = A.rows();
  Vector out(static_cast<Eigen::Index>(prior.components().size()) * F * (F + 1));
  Eigen::Index at = 0;
  for (const MixtureComponent& c : prior.components()) {
    out.segment(at, F) = A * c.mean;
    at += F;
    const Matrix turned = A * c.factor * c.factor.transpose();
    const Matrix change = turned + turned.transpose();  // A S - S A, S = S^T, A = -A^T
    out.segment(at, F * F) = Eigen::Map<const Vector>(change.data(), F * F);
    at += F * F;
  }
  return out;
}

/// Rotations within spaces in which one combination of all components' moments is isotropic:
/// every symmetry is a combination of these.
std::vector<Matrix> candidates(const GaussianMixture& prior) {
  const Eigen::Index F = prior.mean().size();
  Matrix moments = Matrix::Zero(F, F);
  double number = 1;  // weights without simple ratios
  for (const MixtureComponent& c : prior.components()) {
    moments += std::sqrt(number + 0.1) * c.factor * c.factor.transpose();
    moments += std::sqrt(number + 0.7) * c.mean * c.mean.transpose();
    ++number;
  }
  const SymmetricEigen solver(moments);
  const Vector& values = solver.eigenvalues();
  const double alike = kAlike * std::max(values.cwiseAbs().maxCoeff(), 1e-300);
  std::vector<Matrix> out;
  for (Eigen::Index i = 0; i < F; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      if (values[i] - values[j] > alike) continue;
      const Vector x = solver.eigenvectors().col(i), y = solver.eigenvectors().col(j);
      out.emplace_back((x * y.transpose() - y * x.transpose()) / std::sqrt(2.0));
    }
  }
  return out;
}

}  // namespace

std::vector<Matrix> feature_rotations(const Prior& prior) {
  const GaussianMixture* mixture = prior.mixture();
  if (!mixture) return {};
  const std::vector<Matrix> all = candidates(*mixture);
  if (all.empty()) return {};
  const auto n = static_cast<Eigen::Index>(all.size());
  Matrix change(what_changes(*mixture, all[0]).size(), n);
  for (Eigen::Index i = 0; i < n; ++i) change.col(i) = what_changes(*mixture, all[at(i)]);
  double scale = 0;  // of what a rotation could change
  for (const MixtureComponent& c : mixture->components()) {
    scale = std::max({scale, c.mean.norm(), (c.factor * c.factor.transpose()).norm()});
  }
  const double least = kLeast * scale;
  if (change.colwise().norm().maxCoeff() <= least) return all;
  const SymmetricEigen solver(Matrix(change.transpose() * change));
  std::vector<Matrix> out;
  for (Eigen::Index k = 0; k < n; ++k) {
    if (std::sqrt(std::max(0.0, solver.eigenvalues()[k])) > least) continue;
    Matrix sum = Matrix::Zero(all[0].rows(), all[0].cols());
    for (Eigen::Index i = 0; i < n; ++i) sum += solver.eigenvectors()(i, k) * all[at(i)];
    out.push_back(sum);
  }
  return out;
}

Matrix symmetry_directions(const Problem& problem, const Point& point,
                           const std::vector<Eigen::Index>& coordinates) {
  const int H = point.heads();
  std::vector<Vector> columns;
  const auto add = [&](const Point& direction) {
    const Vector all = direction.packed();
    Vector kept = all(coordinates);
    const double before = kept.norm();
    if (before < kLeast * (1 + point.norm())) return;
    // What the coordinates that are not trained would have to do, too, is no symmetry.
    if (std::abs(before - all.norm()) > kLeast * before) return;
    for (int twice = 0; twice < 2; ++twice) {
      for (const Vector& other : columns) kept -= other.dot(kept) * other;
    }
    if (kept.norm() > kLeast * before) columns.push_back(kept.normalized());
  };
  for (int i = 0; i < H; ++i) {
    for (int j = 0; j < i; ++j) {  // R -> R (1 + A), A antisymmetric
      Point turn = Point::zero_like(point);
      turn.R.col(i) = point.R.col(j);
      turn.R.col(j) = -point.R.col(i);
      add(turn);
    }
  }
  for (const Matrix& A : feature_rotations(problem.prior())) {
    Point turn = Point::zero_like(point);
    turn.m = point.m * A;
    add(turn);
  }
  for (const Vector& direction : problem.activation().symmetries(*problem.layout())) {
    Point shift = Point::zero_like(point);
    shift.blocks.values() = direction;
    add(shift);
  }
  Matrix out(static_cast<Eigen::Index>(coordinates.size()),
             static_cast<Eigen::Index>(columns.size()));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    out.col(static_cast<Eigen::Index>(k)) = columns[k];
  }
  return out;
}

}  // namespace headflow
