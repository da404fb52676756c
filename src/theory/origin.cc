#include "theory/origin.h"

#include <cmath>

#include "core/error.h"
#include "core/index.h"

namespace headflow {

OriginConstants origin_constants(const Problem& problem, const Point& here) {
  const auto known = problem.activation().origin_constants(here.blocks);
  if (known) return *known;
  throw Error(fmt::format("no closed forms are known for {}", problem.activation().name()));
}

Point origin(const Problem& problem, const Blocks& blocks) {
  Point point = problem.zero_point();
  const std::vector<int> first(at(problem.H()), 0);
  point.blocks.values() = blocks.of_heads(first).values();
  problem.activation().set_origin(point.blocks);
  return point;
}

Point origin(const Problem& problem) { return origin(problem, problem.start_point().blocks); }

bool is_origin(const Problem& problem, const Point& point) {
  if (!point.m.isZero(0) || !point.R.isZero(0)) return false;
  const Vector& here = point.blocks.values();
  if (here.size() == 0) return true;
  return (here - origin(problem, point.blocks).blocks.values()).cwiseAbs().maxCoeff() < 1e-14;
}

std::vector<OriginMode> origin_modes(const Problem& problem, const Point& here) {
  const OriginConstants c = origin_constants(problem, here);
  const int H = problem.H();
  const Vector& mean = problem.prior().mean();
  const Matrix C = problem.prior().covariance() + mean * mean.transpose();
  const SymmetricEigen solver(C);
  std::vector<OriginMode> modes;
  for (Eigen::Index f = problem.F() - 1; f >= 0; --f) {
    const double variance = solver.eigenvalues()[f], own = -2 * (c.c3 + c.c4) * variance;
    const Vector direction = solver.eigenvectors().col(f);
    modes.push_back({own + 2 * H * (c.c1 + (c.c2 + c.c4) * variance), 1, false, direction});
    if (H > 1) modes.push_back({own, H - 1, true, direction});
  }
  modes.push_back({2 * H * c.c1, H, false, {}});
  if (H > 1) modes.push_back({0, H * (H - 1), true, {}});
  return modes;
}

}  // namespace headflow
