#include "analysis/growth.h"

#include <Eigen/QR>

namespace headflow {

Matrix growth_block(Engine& engine, const Vector& u) {
  const int H = engine.problem().H();
  Point point = engine.problem().start_point();
  point.R.setZero();
  point.m.col(0) = u;
  engine.adapt(point);
  Matrix out(H, H);
  for (int h = 0; h < H; ++h) {
    Point direction = Point::zero_like(point), product;
    direction.m(h, 1) = 1;
    engine.hessian_product(point, direction, product);
    out.col(h) = product.m.col(1);
  }
  return 0.5 * (out + out.transpose());
}

MeasuredGrowth measure_growth(Engine& engine, const Vector& u) {
  const auto H = u.size();
  const Matrix P = Matrix::Identity(H, H) - Matrix::Constant(H, H, 1.0 / static_cast<double>(H));
  const Matrix at_zero = growth_block(engine, Vector::Zero(H));
  constexpr double kSize = 0.12, kRatio = 1.5;
  // Richardson: the loss is even in u, so each level takes away two more powers of the size.
  constexpr int kLevels = 4;
  std::vector<Matrix> level;
  double size = kSize;
  for (int i = 0; i < kLevels; ++i, size /= kRatio) {
    level.push_back(P * (growth_block(engine, size * u) - at_zero) * P / (size * size));
  }
  MeasuredGrowth out;
  double factor = kRatio * kRatio;
  for (int k = 1; k < kLevels; ++k, factor *= kRatio * kRatio) {
    for (int i = 0; i + k < kLevels; ++i) {
      const Matrix better = level[i + 1] + (level[i + 1] - level[i]) / (factor - 1);
      out.error = (better - level[i + 1]).cwiseAbs().maxCoeff();
      level[i] = better;
    }
  }
  out.second_order = level[0];

  const Matrix parts[] = {u.squaredNorm() * P, P * u.cwiseAbs2().asDiagonal() * P,
                          u * u.transpose()};
  Eigen::MatrixXd A(H * H, 3);
  for (int k = 0; k < 3; ++k) A.col(k) = parts[k].reshaped();
  const Eigen::VectorXd y = out.second_order.reshaped();
  const auto solver = A.colPivHouseholderQr();
  const Eigen::VectorXd c = solver.solve(y);
  out.c = {c[0], c[1], c[2]};
  out.misfit = (y - A * c).cwiseAbs().maxCoeff();
  // Errors of entries of one sign and size, carried through the fit.
  const Eigen::MatrixXd pseudo = solver.solve(Eigen::MatrixXd::Identity(H * H, H * H));
  const Eigen::VectorXd reach = pseudo.cwiseAbs().rowwise().sum() * (out.error + out.misfit);
  out.c_error = {reach[0], reach[1], reach[2]};
  return out;
}

}  // namespace headflow
