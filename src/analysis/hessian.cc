#include "analysis/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dynamics/integrator.h"

namespace headflow {

Point Hessian::mode(Eigen::Index k) const {
  Point out = Point::zero_like(shape);
  Vector all = Vector::Zero(out.size());
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    all[coordinates[i]] = eigenvectors(static_cast<Eigen::Index>(i), k);
  }
  out.unpack(all.data());
  return out;
}

double Hessian::error_near_zero() const {
  const double largest = SymmetricEigen(change).eigenvalues().cwiseAbs().maxCoeff();
  double next = HUGE_VAL;  // the smallest of the others
  std::vector<Eigen::Index> small;
  for (Eigen::Index k = 0; k < eigenvalues.size(); ++k) {
    if (std::abs(eigenvalues[k]) <= 2 * largest) {
      small.push_back(k);
    } else {
      next = std::min(next, std::abs(eigenvalues[k]));
    }
  }
  if (small.empty()) return largest;
  const Matrix V = eigenvectors(Eigen::all, small);
  const Matrix among = V.transpose() * change * V;
  return SymmetricEigen(among).eigenvalues().cwiseAbs().maxCoeff() + largest * largest / next;
}

void check_second_derivatives(const Problem& problem) {
  if (problem.activation().smooth()) return;
  throw Error(
      fmt::format("the activation {} has kinks, which second derivatives over samples leave out: "
                  "there is no Hessian, and no search for the end of training that needs one; "
                  "follow the flow (end.search = \"flow\")",
                  problem.activation().name()));
}

Hessian hessian(Engine& engine, const Point& point, SecondDerivatives how) {
  check_unknowns(engine.problem(), "the Hessian");
  check_second_derivatives(engine.problem());
  Hessian out;
  out.shape = Point::zero_like(point);
  const Eigen::Index weights = point.m.size() + point.R.size();
  const auto add = [&](const std::string& name, Eigen::Index first, Eigen::Index size) {
    if (!engine.problem().trains(name)) return;
    for (Eigen::Index i = first; i < first + size; ++i) out.coordinates.push_back(i);
  };
  add("m", 0, point.m.size());
  add("R", point.m.size(), point.R.size());
  for (const BlockLayout::Entry& e : point.blocks.entries()) {
    add(e.info.name, weights + e.offset, e.size);
  }

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
  Matrix whole, change;
  Evaluation here;  // an engine places its nodes when it first sees a point
  engine.evaluate(point, {.loss_error = false}, here);
  const WholeHessian enough =
      how == SecondDerivatives::best ? WholeHessian::exact : WholeHessian::differences;
  const bool at_once = engine.whole_hessian() >= enough && engine.hessian(point, whole, &change);
  if (at_once) {
    raw = whole(out.coordinates, out.coordinates);
    if (change.size() > 0) out.change = change(out.coordinates, out.coordinates);
  }
  const bool without_R = point.R.isZero(0.0) && engine.problem().trains("R");
  const Eigen::Index H = point.heads(), first_R = point.m.size();
  const Eigen::Index at_R = engine.problem().trains("m") ? first_R : 0;  // among the coordinates
  for (Eigen::Index i = 0; !at_once && i < n; ++i) {
    if (without_R && i >= at_R && i < at_R + point.R.size()) {
      if ((i - at_R) % H != 0) continue;
      multiply(i);
      for (Eigen::Index h = 0; h < H; ++h) {
        for (Eigen::Index k = 0; k < H; ++k) raw(i + k, at_R + h * H + k) = flat[first_R + h * H];
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
  const double H = modes[0].heads();
  double total = 0, along_m = 0, along_R = 0;
  const auto& entries = modes[0].blocks.entries();
  std::vector<double> along(entries.size(), 0.0);
  for (const BlockLayout::Entry& e : entries) out.blocks.emplace_back(e.info.name, 0.0);
  Matrix G = Matrix::Zero(modes[0].features(), modes[0].features());
  for (const Point& mode : modes) {
    total += mode.norm() * mode.norm();
    out.m += mode.m.squaredNorm();
    out.R += mode.R.squaredNorm();
    along_m += mode.m.colwise().sum().squaredNorm() / H;
    along_R += mode.R.colwise().sum().squaredNorm() / H;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto values = mode.blocks[entries[i].info.name];
      out.blocks[i].second += values.squaredNorm();
      along[i] += values.sum() * values.sum() / H;
    }
    G += mode.m.transpose() * mode.m;
  }
  double largest = out.m;
  out.along = out.m > 0 ? along_m / out.m : 0;
  const auto consider = [&](double share, double alike) {
    if (share <= largest) return;
    largest = share;
    out.along = alike / share;
  };
  consider(out.R, along_R);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].per_head()) {
      consider(out.blocks[i].second, along[i]);
    } else {
      out.global += out.blocks[i].second / total;
    }
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
  out.m /= total;
  out.R /= total;
  for (auto& [name, share] : out.blocks) share /= total;
  return out;
}

double ModeShape::of_blocks() const {
  double sum = 0;
  for (const auto& [name, share] : blocks) sum += share;
  return sum;
}

std::string ModeShape::text() const {
  constexpr double kMostly = 0.95, kLeast = 0.02;
  std::vector<std::pair<std::string, double>> parts = {{"m", m}, {"R", R}};
  parts.insert(parts.end(), blocks.begin(), blocks.end());
  std::string out;
  int mixed = 0;
  for (const auto& [name, share] : parts) mixed += share >= kLeast;
  for (const auto& [name, share] : parts) {
    if (share < kLeast) continue;
    out += out.empty() ? "" : " + ";
    out += mixed == 1 ? name : fmt::format("{:.0f} % {}", 100 * share, name);
  }
  if (global <= kMostly) {
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

}  // namespace headflow
