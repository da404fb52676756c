#include "expectation/engine.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "expectation/choose_engine.h"
#include "expectation/factorised/factorised.h"
#include "expectation/monte_carlo.h"
#include "expectation/qmc.h"

namespace headflow {

void Engine::check_finite(const Evaluation& result) const {
  const bool errors = std::isfinite(result.loss_error) && result.grad_error.all_finite();
  if (std::isfinite(result.loss) && result.grad.all_finite() && errors) return;
  throw NotFinite(fmt::format(
      "the loss, its gradient or their errors are not finite at this point (engine {}): numbers "
      "overflow; make the numbers of [point] or the prior's parameters smaller",
      name()));
}

void Engine::hessian_product(const Point& point, const Point& direction, Point& out) {
  const double size = direction.norm();
  out = Point::zero_like(point);
  if (size == 0.0) return;
  const double step = 1e-3 / size;
  Vector x(point.size()), d(point.size()), g(point.size()), sum = Vector::Zero(point.size());
  point.pack(x.data());
  direction.pack(d.data());
  Evaluation evaluation;
  Point moved = point;
  constexpr std::array<std::pair<double, double>, 4> kStencil{
      {{-2.0, 1.0 / 12}, {-1.0, -2.0 / 3}, {1.0, 2.0 / 3}, {2.0, -1.0 / 12}}};
  for (const auto& [at, weight] : kStencil) {
    const Vector y = x + at * step * d;
    moved.unpack(y.data());
    evaluate(moved, {.loss_error = false}, evaluation);
    evaluation.grad.pack(g.data());
    sum += weight / step * g;
  }
  out.unpack(sum.data());
}

std::unique_ptr<Engine> make_engine(const Problem& problem, const EngineOptions& options,
                                    const EngineUse& use, const Context& context) {
  switch (options.engine) {
    case EngineName::mc: return std::make_unique<MonteCarlo>(problem, options, context);
    case EngineName::qmc: return std::make_unique<Qmc>(problem, options, context);
    case EngineName::factorised: return std::make_unique<Factorised>(problem, options, context);
    case EngineName::automatic: break;
  }
  return choose_engine(problem, options, use, context);
}

}  // namespace headflow
