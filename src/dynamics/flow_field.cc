#include "dynamics/flow_field.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace headflow {
namespace {

constexpr double kDifference = 1e-6;  // of a coordinate, for slopes

}  // namespace

FlowField::FlowField(Engine& engine, const FlowOptions& options)
    : engine_(engine),
      kappa_(options.kappa),
      learning_rate_(options.integrator == Scheme::map ? options.step : 0.0),
      half_step_(options.integrator == Scheme::first_order ? options.step / 2 : 0.0),
      point_(engine.problem().zero_point()),
      ahead_(point_) {}

Vector FlowField::pack(const Point& point) const {
  Point state = point;
  if (kappa_ > 0) state.R = point.R * point.R.transpose();
  Vector y(state.size());
  state.pack(y.data());
  return y;
}

const Point& FlowField::unpack(const double* y) {
  point_.unpack(y);
  if (kappa_ > 0) point_.R = positive_square_root(point_.R);
  return point_;
}

bool FlowField::evaluate(const Point& point, const Request& request, Evaluation& out) {
  try {
    engine_.evaluate(point, request, out);
  } catch (const NotFinite&) {
    return false;
  }
  engine_.problem().freeze(out.grad);
  return true;
}

void FlowField::write_velocity(const Point& point, const Point& grad, const Matrix& noise,
                               double* velocity) {
  Eigen::Map<Vector> out(velocity, point.size());
  if (kappa_ > 0) {
    // Euler's step with the last term is the map: with G = grad_R E and its rate gamma,
    // (R - gamma G)(R - gamma G)^T = R R^T - gamma (G R^T + R G^T - gamma G G^T).
    Point moved = grad;
    const Matrix half = grad.R * point.R.transpose();
    const Matrix square = grad.R * grad.R.transpose();
    moved.R = half + half.transpose() - kappa_ * noise - learning_rate_ * square;
    moved.pack(velocity);
  } else {
    grad.pack(velocity);
  }
  out *= -1.0;
}

bool FlowField::operator()(const double* y, double* velocity) {
  const Eigen::Map<const Vector> state(y, point_.size());
  if (!state.allFinite() || state.cwiseAbs().maxCoeff() > kDiverged) return false;
  const Point& point = unpack(y);
  ++evaluations_;
  const Request request{.loss_error = false, .second_moment = kappa_ > 0};
  if (!evaluate(point, request, evaluation_)) return false;
  const Point* grad = &evaluation_.grad;
  if (half_step_ > 0) {
    ahead_ = evaluation_.grad;
    ahead_ *= half_step_;
    ahead_ += point;
    if (!ahead_.all_finite()) return false;
    if (!evaluate(ahead_, {.loss_error = false}, evaluation_ahead_)) return false;
    grad = &evaluation_ahead_.grad;
  }
  write_velocity(point, *grad, evaluation_.second_moment, velocity);
  return true;
}

FieldSlopes FlowField::slopes() {
  if (kappa_ > 0 || half_step_ > 0) {
    return [this](const double* y, double* columns) { return write_differences(y, columns); };
  }
  if (engine_.whole_hessian() == WholeHessian::none) return {};
  return [this](const double* y, double* columns) { return write_slopes(y, columns); };
}

bool FlowField::write_differences(const double* y, double* columns) {
  const Eigen::Index n = point_.size();
  const Matrix no_noise = Matrix::Zero(point_.heads(), point_.heads());
  Vector state = Eigen::Map<const Vector>(y, n), here(n);
  Eigen::Map<Eigen::MatrixXd> out(columns, n, n);
  const auto velocity_at = [&](const Vector& at, double* to) {
    const Point& point = unpack(at.data());
    if (!evaluate(point, {.loss_error = false}, evaluation_ahead_)) return false;
    write_velocity(point, evaluation_ahead_.grad, no_noise, to);
    return true;
  };
  if (!velocity_at(state, here.data())) return false;
  for (Eigen::Index j = 0; j < n; ++j) {
    const double before = state[j], step = kDifference * std::max(1.0, std::abs(before));
    state[j] = before + step;
    if (!velocity_at(state, columns + j * n)) return false;
    out.col(j) = (out.col(j) - here) / step;
    state[j] = before;
  }
  return true;
}

bool FlowField::write_slopes(const double* y, double* columns) {
  const Point point = unpack(y);
  const Eigen::Index n = point.size();
  Matrix whole;
  Eigen::Map<Eigen::MatrixXd> out(columns, n, n);
  try {
    const bool at_once = engine_.hessian(point, whole);
    for (Eigen::Index j = 0; j < n; ++j) {
      Point column = point;
      if (at_once) {
        column.unpack(Vector(whole.col(j)).data());
      } else {  // the nodes are others meanwhile
        Point direction = point;
        direction.unpack(Vector(Vector::Unit(n, j)).data());
        engine_.hessian_product(point, direction, column);
      }
      engine_.problem().freeze(column);
      out.col(j) = -column.packed();
    }
  } catch (const NotFinite&) {
    return false;
  }
  return true;
}

}  // namespace headflow
