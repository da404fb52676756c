#include "analysis/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamics/integrator.h"

namespace headflow {

Point Hessian::mode(Eigen::Index k) const {
  Point out = Point::zero(heads, features);
  Vector all = Vector::Zero(out.size());
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    all[coordinates[i]] = eigenvectors(static_cast<Eigen::Index>(i), k);
  }
  out.unpack(all.data());
  return out;
}

Hessian hessian(Engine& engine, const Point& point, SecondDerivatives how) {
  check_unknowns(point.heads(), point.features(), "the Hessian");
  const ActivationInfo& info = engine.problem().activation().info();
  Hessian out;
  out.heads = point.heads();
  out.features = point.features();
  const Eigen::Index weights = point.m.size() + point.R.size();
  out.coordinates.resize(static_cast<std::size_t>(weights));
  std::iota(out.coordinates.begin(), out.coordinates.end(), Eigen::Index{0});
  for (Eigen::Index h = 0; info.trains_b && h < point.heads(); ++h) {
    out.coordinates.push_back(weights + h);
  }
  if (info.trains_v) out.coordinates.push_back(point.size() - 1);

  const auto n = static_cast<Eigen::Index>(out.coordinates.size());
  Matrix raw = Matrix::Zero(n, n);
  Vector flat(point.size());
  Point direction = point, product;
  const auto multiply = [&](Eigen::Index i) {
    flat = Vector::Unit(point.size(), out.coordinates[static_cast<std::size_t>(i)]);
    direction.unpack(flat.data());
    if (how == SecondDerivatives::differences) {
      engine.Engine::hessian_product(point, direction, product);
    } else {
      engine.hessian_product(point, direction, product);
    }
    product.pack(flat.data());
  };
  // grad_R E = 2 S R with S a function of R R^T: at R = 0 the columns of R part from each other and
  // from all else, and are alike, so that one of them tells all.
  const bool without_R = point.R.isZero(0.0);
  const Eigen::Index H = point.heads(), first_R = point.m.size();
  for (Eigen::Index i = 0; i < n; ++i) {
    if (without_R && i >= first_R && i < weights) {
      if ((i - first_R) % H != 0) continue;
      multiply(i);
      for (Eigen::Index h = 0; h < H; ++h) {
        for (Eigen::Index k = 0; k < H; ++k)
          raw(i + k, first_R + h * H + k) = flat[first_R + h * H];
      }
      continue;
    }
    multiply(i);
    for (Eigen::Index j = 0; j < n; ++j) {
      raw(i, j) = flat[out.coordinates[static_cast<std::size_t>(j)]];
    }
  }
  out.asymmetry = (raw - raw.transpose()).cwiseAbs().maxCoeff();
  out.matrix = 0.5 * (raw + raw.transpose());
  const SymmetricEigen solver(out.matrix);
  out.eigenvalues = solver.eigenvalues();
  out.eigenvectors = solver.eigenvectors();
  return out;
}

ModeShape mode_shape(const std::vector<Point>& modes) {
  ModeShape out;
  double total = 0, H = 1, along_m = 0, along_R = 0, along_b = 0;
  Matrix G = Matrix::Zero(modes[0].features(), modes[0].features());
  for (const Point& mode : modes) {
    H = mode.heads();
    total += mode.norm() * mode.norm();
    out.m += mode.m.squaredNorm();
    out.R += mode.R.squaredNorm();
    out.b += mode.b.squaredNorm();
    out.v += mode.v * mode.v;
    along_m += mode.m.colwise().sum().squaredNorm() / H;
    along_R += mode.R.colwise().sum().squaredNorm() / H;
    along_b += mode.b.sum() * mode.b.sum() / H;
    G += mode.m.transpose() * mode.m;
  }
  if (out.m >= std::max(out.R, out.b)) {
    out.along = out.m > 0 ? along_m / out.m : 0;
  } else {
    out.along = out.R >= out.b ? along_R / out.R : along_b / out.b;
  }
  if (out.m > 1e-12 * total) {
    const SymmetricEigen solver(G);
    out.direction = solver.eigenvectors().rightCols(1);
    Eigen::Index largest = 0;
    out.direction.cwiseAbs().maxCoeff(&largest);
    if (out.direction[largest] < 0) out.direction *= -1;
    out.carried = solver.eigenvalues()[G.rows() - 1] / out.m;
    out.features = G.diagonal() / out.m;
  }
  for (double* share : {&out.m, &out.R, &out.b, &out.v}) *share /= total;
  return out;
}

std::string ModeShape::text() const {
  constexpr double kMostly = 0.95, kLeast = 0.02;
  const std::pair<double, const char*> parts[] = {{m, "m"}, {R, "R"}, {b, "b"}, {v, "v"}};
  std::string out;
  int mixed = 0;
  for (const auto& [share, name] : parts) mixed += share >= kLeast;
  for (const auto& [share, name] : parts) {
    if (share < kLeast) continue;
    out += out.empty() ? "" : " + ";
    out += mixed == 1 ? name : fmt::format("{:.0f} % {}", 100 * share, name);
  }
  if (v <= kMostly) {
    out += along > kMostly       ? ", all heads alike"
           : along < 1 - kMostly ? ", across heads"
                                 : fmt::format(", {:.0f} % alike", 100 * along);
  }
  if (m < kLeast) return out;
  // One direction, or several features that a degenerate space mixes at will.
  const auto count = static_cast<int>((features.array() > 1 - kMostly).count());
  if (count > 1 && carried < kMostly) {
    out += count == features.size() ? ", all features" : ", features";
    for (Eigen::Index f = 0; count < features.size() && f < features.size(); ++f) {
      if (features[f] > 1 - kMostly) out += fmt::format(" {}", f + 1);
    }
    return out;
  }
  Eigen::Index f = 0;
  if (direction.cwiseAbs().maxCoeff(&f) > std::sqrt(kMostly)) {
    return out + fmt::format(", feature {}", f + 1);
  }
  out += ", direction (";
  for (Eigen::Index i = 0; i < direction.size(); ++i) {
    out += fmt::format("{}{:.2f}", i ? ", " : "", direction[i]);
  }
  return out + ")";
}

Matrix symmetry_directions(const Problem& problem, const Point& point,
                           const std::vector<Eigen::Index>& coordinates) {
  const int H = point.heads();
  std::vector<Vector> columns;
  const auto add = [&](const Point& direction) {
    Vector all(direction.size()), kept(static_cast<Eigen::Index>(coordinates.size()));
    direction.pack(all.data());
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
      kept[static_cast<Eigen::Index>(i)] = all[coordinates[i]];
    }
    for (const Vector& other : columns) kept -= other.dot(kept) * other;
    if (kept.norm() > 1e-8) columns.push_back(kept.normalized());
  };
  for (int i = 0; i < H; ++i) {
    for (int j = 0; j < i; ++j) {  // R -> R (1 + A), A antisymmetric
      Point turn = Point::zero(H, point.features());
      turn.R.col(i) = point.R.col(j);
      turn.R.col(j) = -point.R.col(i);
      add(turn);
    }
  }
  if (problem.activation().info().factorisation == Factorisation::joint) {
    Point shift = Point::zero(H, point.features());
    shift.b.setOnes();
    add(shift);
  }
  Matrix out(static_cast<Eigen::Index>(coordinates.size()),
             static_cast<Eigen::Index>(columns.size()));
  for (std::size_t k = 0; k < columns.size(); ++k)
    out.col(static_cast<Eigen::Index>(k)) = columns[k];
  return out;
}

}  // namespace headflow
