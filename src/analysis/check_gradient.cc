#include "analysis/check_gradient.h"

#include <algorithm>
#include <cmath>

namespace headflow {

GradientCheck check_gradient(Engine& engine, const Point& point) {
  constexpr double kStep = 2e-3;
  Evaluation e;
  engine.adapt(point);
  engine.evaluate(point, {.loss_error = false}, e);
  const Vector grad = e.grad.packed(), at = point.packed();
  Point moved = point;
  const auto loss = [&](Eigen::Index i, double by) {
    Vector x = at;
    x[i] += by;
    moved.unpack(x.data());
    engine.evaluate(moved, {.loss_error = false}, e);
    return e.loss;
  };
  GradientCheck out;
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    const double near = loss(i, kStep) - loss(i, -kStep),
                 far = loss(i, 2 * kStep) - loss(i, -2 * kStep);
    const double slope = (8 * near - far) / (12 * kStep);
    out.difference = std::max(out.difference, std::abs(slope - grad[i]));
    out.largest = std::max(out.largest, std::abs(grad[i]));
  }
  return out;
}

}  // namespace headflow
