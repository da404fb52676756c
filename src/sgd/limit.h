#pragma once

// The limits of SGD at large D, from the very start of a run, at the times of its records.

#include <memory>
#include <string>
#include <vector>

#include "dynamics/flow.h"
#include "sgd/sgd.h"

namespace headflow {

struct LimitOptions {
  std::string name = "flow";  ///< flow (gradient flow), kappa (keeps the noise), first-order
                              ///< (and the finite steps, to first order in gamma) or map
  double rtol = 1e-6, atol = 1e-8;
};

/// All that integrate_flow needs. The problem has the overlaps p of the run's hidden directions.
struct Limit {
  Problem problem;
  Point start;
  FlowOptions flow;
  std::unique_ptr<Engine> engine;
};

/// The limits that there are, by name.
std::vector<std::string> limit_names();
/// The names as given, each once. Throws OptionError for compare.theory if there are none, or one
/// that is no limit.
std::vector<std::string> checked_limits(const std::vector<std::string>& names);

/// Throws OptionError if compare.rtol or compare.atol is out of range.
void check_steps(double rtol, double atol);

/// `steps`: after which the run was recorded. Throws OptionError for an unknown name.
Limit make_limit(const ProblemOptions& problem, const EngineOptions& engine, const SgdOptions& sgd,
                 const SgdState& start, const std::vector<std::int64_t>& steps,
                 const LimitOptions& options);

}  // namespace headflow
