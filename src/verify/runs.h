#pragma once

// What statements about training are measured on, on one core: whole flows, ends and steps of SGD.
// All throw Interrupted if they are told to stop, as what ends early would be taken for the end.

#include <functional>

#include "analysis/fixed_point.h"
#include "core/error.h"
#include "dynamics/flow.h"
#include "sgd/sgd.h"
#include "verify/setting.h"

namespace headflow {

/// The flow, until `enough` holds at a recorded point.
inline Trajectory flow_from(const Problem& problem, const Point& start, const FlowOptions& flow,
                            const EngineOptions& engine, const Context& context,
                            const std::function<bool(const Point&)>& enough = nullptr) {
  Trajectory run;
  const Context until =
      context.or_when([&] { return enough && !run.point.empty() && enough(run.point.back()); });
  integrate_flow(*make_flow_engine(problem, engine, flow, start, context), start, flow, run, until);
  context.check();
  return run;
}

/// Where training ends.
inline FixedPoint end_from(const Problem& problem, const Point& start,
                           const FixedPointOptions& options, double tolerance,
                           const Context& context) {
  FixedPoint end = find_fixed_point(problem, on_one_core(tolerance), start, options, context);
  context.check();
  return end;
}

/// The next steps of SGD.
inline void advance_whole(Sgd& runs) {
  if (!runs.advance()) throw Interrupted();
}

}  // namespace headflow
