#pragma once

// The limits of SGD at large D, from the very start of a run, at the times of its records.

#include <memory>
#include <string>
#include <vector>

#include "dynamics/flow.h"
#include "sgd/sgd.h"

namespace headflow {

enum class LimitKind {
  flow,         ///< gradient flow
  kappa,        ///< keeps the noise
  first_order,  ///< and the finite steps, to first order in gamma
  map,          ///< one step of SGD
};
template <>
inline constexpr Named<LimitKind> kNames<LimitKind>[] = {{LimitKind::flow, "flow"},
                                                         {LimitKind::kappa, "kappa"},
                                                         {LimitKind::first_order, "first-order"},
                                                         {LimitKind::map, "map"}};

struct LimitOptions {
  LimitKind kind = LimitKind::flow;
  double rtol = 1e-6, atol = 1e-8;
};

/// All that integrate_flow needs. The problem has the overlaps p of the run's hidden directions.
struct Limit {
  Problem problem;
  Point start;
  FlowOptions flow;
  std::unique_ptr<Engine> engine;
};

/// The limits as given, each once. Throws OptionError for compare.theory if there are none.
std::vector<LimitKind> checked_limits(const std::vector<LimitKind>& kinds);

/// Throws OptionError if compare.rtol or compare.atol is out of range.
void check_steps(double rtol, double atol);

/// The problem is that of the run, without overlaps p. `steps`: after which the run was recorded.
Limit make_limit(const Problem& problem, const EngineOptions& engine, const SgdOptions& sgd,
                 const SgdState& start, const std::vector<std::int64_t>& steps,
                 const LimitOptions& options, const Context& context = {});

}  // namespace headflow
