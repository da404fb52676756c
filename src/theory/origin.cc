#include "theory/origin.h"

#include <cmath>

#include "core/error.h"

namespace headflow {

OriginConstants origin_constants(const Problem& problem, double b) {
  const double L = problem.L(), H = problem.H();
  // J_ll' = d sigma_l / d chi_l' of one head at chi = 0: a (delta - s) with these a and s.
  const auto squares = [&](double a, double s) {
    const double column = a * a * ((1 - s) * (1 - s) + (L - 1) * s * s);
    return std::pair{L * column / (H * H), column / (H * H)};  // c1, c2
  };
  switch (problem.activation().info().factorisation) {
    case Factorisation::heads: {
      const auto [c1, c2] = squares(1 / L, 1 / L);
      return {c1, c2, (L - 1) / (H * L * L) * (1 - 2 / L), 0, 2 * (L - 1) / (H * L * L)};
    }
    case Factorisation::heads_with_sink: {
      const double Z = L + std::exp(b), v = Z / L;
      const auto [c1, c2] = squares(v / Z, 1 / Z);
      return {c1, c2, v * (L - 1) / (H * L * Z) * (1 - 2 / Z), 0, 2 * v * (L - 1) / (H * L * Z)};
    }
    case Factorisation::joint: {
      const auto [c1, c2] = squares(1 / L, 1 / L);
      return {c1, c2, (L - 1) / (H * L * L) * (1 - 2 / (H * L)), 2 * (L - 1) / (L * H * L * H * L),
              2 * (L - 1) / (H * L * L)};
    }
    case Factorisation::none: break;
  }
  throw Error(fmt::format("no closed forms are known for {}", problem.activation().info().name));
}

Point origin(const Problem& problem, double b) {
  Point point = Point::zero(problem.H(), problem.F());
  const ActivationInfo& info = problem.activation().info();
  if (info.trains_b) point.b.setConstant(b);
  point.v = info.trains_v ? (problem.L() + std::exp(b)) / problem.L() : 1.0;
  return point;
}

bool is_origin(const Problem& problem, const Point& point) {
  const Point there = origin(problem, point.b[0]);
  return point.m.isZero(0) && point.R.isZero(0) &&
         (!problem.activation().info().trains_b ||
          (point.b.array() - point.b[0]).abs().maxCoeff() == 0) &&
         std::abs(point.v - there.v) < 1e-14;
}

std::vector<OriginMode> origin_modes(const Problem& problem, double b) {
  const OriginConstants c = origin_constants(problem, b);
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
