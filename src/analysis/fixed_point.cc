#include "analysis/fixed_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headflow {
namespace {

constexpr int kMostNewton = 30;
constexpr double kLongestStep = 0.3;  // of Newton: in the same basin

Vector packed(const Point& point) {
  Vector out(point.size());
  point.pack(out.data());
  return out;
}

/// The gradient in the Hessian's coordinates.
Vector restricted(const Hessian& h, const Point& grad) {
  const Vector all = packed(grad);
  Vector out(static_cast<Eigen::Index>(h.coordinates.size()));
  for (Eigen::Index i = 0; i < out.size(); ++i) {
    out[i] = all[h.coordinates[static_cast<std::size_t>(i)]];
  }
  return out;
}

/// Newton's step without the directions whose curvature vanishes; towards the minimum along those
/// of positive curvature and away from it along the others, so that a saddle is found, too.
Vector newton_step(const Hessian& h, const Vector& gradient, double zero) {
  const Vector along = h.eigenvectors.transpose() * gradient;
  Vector step = Vector::Zero(along.size());
  for (Eigen::Index k = 0; k < along.size(); ++k) {
    if (std::abs(h.eigenvalues[k]) > zero) step[k] = -along[k] / h.eigenvalues[k];
  }
  Vector out = h.eigenvectors * step;
  if (out.norm() > kLongestStep) out *= kLongestStep / out.norm();
  return out;
}

Point moved(const Hessian& h, const Point& point, const Vector& step) {
  Vector all = packed(point);
  for (Eigen::Index i = 0; i < step.size(); ++i) {
    all[h.coordinates[static_cast<std::size_t>(i)]] += step[i];
  }
  Point out = point;
  out.unpack(all.data());
  return out;
}

/// Below this an eigenvalue counts as zero.
double zero_curvature(const Engine& engine, const Hessian& h) {
  return std::max(
      {10 * h.asymmetry, 100 * engine.tolerance(), 1e-9 * h.eigenvalues.cwiseAbs().maxCoeff()});
}

}  // namespace

FixedPoint find_fixed_point(const Problem& problem, const EngineOptions& engine_options,
                            const Point& start, const FixedPointOptions& options,
                            const FlowObserver& observer) {
  FixedPoint out;
  FlowOptions flow;
  flow.integrator = "implicit";
  flow.rtol = options.rtol;
  flow.atol = options.atol;
  flow.outputs = 1;
  flow.gradient_tolerance = options.flow_gradient;
  EngineOptions exact_options = engine_options;
  exact_options.tolerance = std::min(exact_options.tolerance, 0.03 * options.gradient);
  const std::unique_ptr<Engine> rough = make_flow_engine(problem, engine_options, flow, start);
  Point point = start;
  Hessian curvature;
  double zero = 0;
  while (true) {
    flow.time = std::max(1.0, options.longest_time - out.time);
    Trajectory trajectory;
    const FlowSummary summary = integrate_flow(*rough, point, flow, trajectory, observer);
    out.time += summary.final_time;
    out.evaluations += summary.evaluations;
    point = trajectory.point.back();
    if (summary.outcome == FlowOutcome::diverged || summary.outcome == FlowOutcome::interrupted) {
      out.message = summary.message;
      out.point = point;
      return out;
    }
    rough->adapt(point);
    curvature = hessian(*rough, point);
    zero = zero_curvature(*rough, curvature);
    const bool leaves = curvature.eigenvalues[0] < -zero;
    // Near a saddle: the flow goes on until its small part along the unstable direction has grown,
    // or until there is none that could.
    if (!leaves || out.time >= options.longest_time || flow.gradient_tolerance < 1e-11) break;
    flow.gradient_tolerance *= 0.1;
  }

  const Point flow_end = point;
  const std::unique_ptr<Engine> exact = make_engine(problem, exact_options, {&point, false});
  Engine& engine = *exact;
  engine.adapt(point);
  out.engine = engine.name();
  out.error_kind = to_string(engine.error_kind());
  curvature = hessian(engine, point);
  zero = zero_curvature(engine, curvature);
  Evaluation e;
  for (int step = 0; step < kMostNewton; ++step) {
    engine.evaluate(point, {.loss_error = false}, e);
    ++out.evaluations;
    if (restricted(curvature, e.grad).norm() < 0.3 * options.gradient) break;
    point = moved(curvature, point, newton_step(curvature, restricted(curvature, e.grad), zero));
    engine.follow(point);
    curvature = hessian(engine, point);
    zero = zero_curvature(engine, curvature);
  }
  engine.adapt(point);
  engine.evaluate(point, {.gradient_error = true}, e);
  curvature = hessian(engine, point);
  zero = zero_curvature(engine, curvature);

  out.point = point;
  out.loss = e.loss;
  out.loss_error = e.loss_error;
  out.gradient_norm = restricted(curvature, e.grad).norm();
  out.converged = out.gradient_norm < options.gradient;
  out.newton_distance = (packed(point) - packed(flow_end)).norm();
  out.eigenvalues = curvature.eigenvalues;
  out.error = zero;
  for (const double x : curvature.eigenvalues) {
    out.index += x < -zero;
    out.zero_modes += std::abs(x) <= zero;
  }
  out.stability = out.index > 0 ? Stability::saddle : Stability::minimum;
  if (out.index > 0) out.escape_rate = -curvature.eigenvalues[0];
  out.symmetries =
      static_cast<int>(symmetry_directions(engine.problem(), point, curvature.coordinates).cols());
  for (int h = 0; h < point.heads(); ++h) {
    const bool small = point.m.row(h).norm() < 1e-6 && point.R.row(h).norm() < 1e-6;
    const bool silent =
        engine.problem().activation().info().factorisation == Factorisation::joint &&
        point.b[h] < point.b.maxCoeff() - 20;
    out.unused_heads += small || silent;
  }
  out.message = fmt::format(
      "{} with gradient {:.2g} after tau = {:.4g}; Newton moved it by {:.2g}",
      out.index == 0
          ? "a minimum"
          : fmt::format("a saddle of index {} (escape rate {:.3g})", out.index, out.escape_rate),
      out.gradient_norm, out.time, out.newton_distance);
  return out;
}

}  // namespace headflow
