#include "sgd/limit.h"

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"

namespace headflow {

std::vector<LimitKind> checked_limits(const std::vector<LimitKind>& kinds) {
  std::vector<LimitKind> out;
  for (const LimitKind kind : kinds) {
    if (std::ranges::count(out, kind) == 0) out.push_back(kind);
  }
  if (out.empty()) throw OptionError("compare.theory", "[]", one_of(names_of<LimitKind>(), ""));
  return out;
}

void check_steps(double rtol, double atol) {
  const auto check = [](const char* key, double value, double least) {
    if (value >= least && value <= 0.1) return;
    throw OptionError(key, fmt::format("{:g}", value),
                      fmt::format("must be from {:g} to 0.1", least));
  };
  check("compare.rtol", rtol, 1e-14);
  check("compare.atol", atol, 1e-16);
}

Limit make_limit(const Problem& problem_of_run, const EngineOptions& engine_options,
                 const SgdOptions& sgd, const SgdState& start,
                 const std::vector<std::int64_t>& steps, const LimitOptions& options,
                 const Context& context) {
  const Problem problem = problem_of_run.with_overlaps(start.p());
  Limit out{problem, problem.frame().enter(point_of(start)), {}, {}};
  out.flow.rtol = options.rtol;
  out.flow.atol = options.atol;
  for (const std::int64_t step : steps) {
    out.flow.times.push_back(sgd.lr * static_cast<double>(step));
  }
  if (out.flow.times.size() < 2) out.flow.times.push_back(sgd.lr);
  out.flow.time = out.flow.times.back();
  out.flow.gradient_tolerance = 0;
  const bool noiseless = options.kind == LimitKind::flow;
  switch (options.kind) {
    case LimitKind::flow:
      out.flow.integrator = out.start.size() <= kMostUnknowns ? Scheme::implicit : Scheme::adaptive;
      break;
    case LimitKind::kappa: out.flow.integrator = Scheme::adaptive; break;
    case LimitKind::first_order: out.flow.integrator = Scheme::first_order; break;
    case LimitKind::map: out.flow.integrator = Scheme::map; break;
  }
  out.flow.step = sgd.lr;
  if (!noiseless) {
    out.flow.kappa = sgd.lr * static_cast<double>(sgd.dim) / static_cast<double>(sgd.batch);
  }
  out.engine = make_flow_engine(out.problem, engine_options, out.flow, out.start, context);
  return out;
}

}  // namespace headflow
