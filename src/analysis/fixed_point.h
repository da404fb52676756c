#pragma once

// Where training ends: the flow is followed into a basin, and Newton's method takes the last steps.

#include <cmath>
#include <optional>

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
  unknown,  ///< the search stopped before the Hessian was looked at
  minimum,  ///< no direction of negative curvature
  saddle,   ///< the flow rests here for longest_time, but could leave
};

template <>
inline constexpr Named<Stability> kNames<Stability>[] = {{Stability::unknown, "unknown"},
                                                         {Stability::minimum, "minimum"},
                                                         {Stability::saddle, "saddle"}};

struct FixedPoint {
  bool converged = false;  ///< the gradient is below what was asked
  std::string message;
  Point point;
  double loss = 0, loss_error = 0, gradient_norm = 0;

  // What the Hessian at the end tells; none of it is known before it was looked at.
  Stability stability = Stability::unknown;
  std::optional<int> index;       ///< number of negative eigenvalues beyond their error
  std::optional<int> zero_modes;  ///< eigenvalues that vanish within it
  std::optional<int> symmetries;  ///< of these, directions along which the loss cannot change
  /// Heads whose removal changes no other head's attention: |m_h|, |R_h| ~ 0.
  std::optional<int> unused_heads;
  double escape_rate = NAN;      ///< of a saddle: minus the smallest eigenvalue; else 0
  double error = NAN;            ///< of an eigenvalue
  double newton_distance = NAN;  ///< moved by Newton; small, in the same basin
  Vector eigenvalues;            ///< empty if not known

  double time = 0;  ///< of the flow
  std::int64_t evaluations = 0;
  std::string engine;
  ErrorKind error_kind = ErrorKind::refinement;  ///< of the loss
};

/// From `start`. The flow goes on past saddles: a small gradient with a negative curvature is not
/// the end, unless nothing of it points along that curvature. Newton's method takes over where it
/// stays in the basin: the loss falls at every step, the Hessian has no negative eigenvalue on the
/// way, and the way is short. The engine of the flow is asked for ten times `engine.tolerance`, for
/// less where that takes too many nodes; those of Newton and of the result are more exact.
/// The observer is told as by a flow. If nothing is found, loss and gradient are those where the
/// flow was, and what only a Hessian could tell is unknown.
FixedPoint find_fixed_point(const Problem& problem, const EngineOptions& engine, const Point& start,
                            const FixedPointOptions& options, const Context& context = {});

/// Where heads end that are equal, with R = 0: the unspecialised point, from which they part if it
/// is a saddle. Equal heads are one head, so that nothing can drive them apart on the way. They
/// start from the blocks of the first head.
Point unspecialised_end(const Problem& problem, const EngineOptions& engine, const Blocks& blocks,
                        const Context& context = {});

}  // namespace headflow
