#pragma once

// Where training ends: the flow is followed into a basin, and Newton's method takes the last steps.

#include "analysis/hessian.h"
#include "dynamics/flow.h"

namespace headflow {

struct FixedPointOptions {
  double gradient = 1e-8;       ///< asked of the norm of the gradient
  double flow_gradient = 1e-3;  ///< where Newton is first tried; if it would leave the basin, the
                                ///< flow goes on to a tenth of it, and so on
  double longest_time = 1e8;    ///< of the flow
  double rtol = 1e-6, atol = 1e-8;
};

enum class Stability {
  minimum,  ///< no direction of negative curvature
  saddle,   ///< the flow rests here for longest_time, but could leave
};

struct FixedPoint {
  bool converged = false;  ///< the gradient is below what was asked
  std::string message;
  Point point;
  double loss = 0, loss_error = 0, gradient_norm = 0;
  Stability stability = Stability::minimum;
  int index = 0;       ///< number of negative eigenvalues of the Hessian beyond its error
  int zero_modes = 0;  ///< eigenvalues that vanish within it
  int symmetries = 0;  ///< of these, directions along which the loss cannot change
  int unused_heads =
      0;  ///< heads whose removal changes no other head's attention: |m_h|, |R_h| ~ 0
  double escape_rate = 0;  ///< of a saddle: minus the smallest eigenvalue
  double error = 0;        ///< of an eigenvalue
  Vector eigenvalues;
  double time = 0;             ///< of the flow
  double newton_distance = 0;  ///< moved by Newton; small, in the same basin
  std::int64_t evaluations = 0;
  std::string engine, error_kind;
};

/// From `start`. The flow goes on past saddles: a small gradient with a negative curvature is not
/// the end, unless nothing of it points along that curvature. Newton's method takes over where it
/// stays in the basin: the loss falls at every step, the Hessian has no negative eigenvalue on the
/// way, and the way is short. The engine of the flow is asked for ten times `engine.tolerance`, for
/// less where that takes too many nodes; those of Newton and of the result are more exact.
/// `observer` as for a flow. If nothing is found, loss and gradient are those where the flow was.
FixedPoint find_fixed_point(const Problem& problem, const EngineOptions& engine, const Point& start,
                            const FixedPointOptions& options, const FlowObserver& observer = {});

/// Where heads end that are equal, with R = 0: the unspecialised point, from which they part if it
/// is a saddle. Equal heads are one head, so that nothing can drive them apart on the way. `b` is
/// where the biases start.
Point unspecialised_end(const Problem& problem, const EngineOptions& engine, double b);

}  // namespace headflow
