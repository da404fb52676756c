#pragma once

// What a flow integrates: dy/dtau = f(y) on packed states y = (m, R, blocks), or with kappa > 0,
// where noise moves R R^T, y = (m, R R^T, blocks).
//
//   flow         f = -grad E
//   kappa        d(R R^T)/dtau = -(G R^T + R G^T) + kappa E[g g^T], G = grad_R E
//   first_order  grad E is taken half a step ahead, at y + (gamma/2) grad E(y): descent by y' = y -
//                gamma grad E follows dy/dtau = -grad E - (gamma/2) H grad E but for terms in
//                gamma^2 (the modified equation of Euler's method)
//   map          f whose Euler step is one step of SGD

#include "dynamics/flow.h"
#include "dynamics/integrator.h"

namespace headflow {

/// A coordinate this large is on its way to infinity: everything of interest is below 1e3.
inline constexpr double kDiverged = 1e8;

class FlowField {
 public:
  FlowField(Engine& engine, const FlowOptions& options);

  Vector pack(const Point& point) const;
  const Point& unpack(const double* y);

  /// f(y). False if it is not finite.
  bool operator()(const double* y, double* velocity);

  /// df/dy: exact if the engine has all second derivatives at once; with noise or steps ahead by
  /// differences of gradients, without either: near enough for Newton's method, and a fraction of
  /// the cost. Else nothing.
  FieldSlopes slopes();

  Engine& engine() { return engine_; }
  double last_loss() const { return evaluation_.loss; }
  std::int64_t evaluations() const { return evaluations_; }
  void count_evaluation() { ++evaluations_; }

 private:
  bool evaluate(const Point& point, const Request& request, Evaluation& out);
  void write_velocity(const Point& point, const Point& grad, const Matrix& noise, double* velocity);
  bool write_slopes(const double* y, double* columns);
  bool write_differences(const double* y, double* columns);

  Engine& engine_;
  double kappa_, learning_rate_, half_step_;
  Point point_, ahead_;
  Evaluation evaluation_, evaluation_ahead_;
  std::int64_t evaluations_ = 0;
};

}  // namespace headflow
