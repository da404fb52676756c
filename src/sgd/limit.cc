#include "sgd/limit.h"

namespace headflow {

Limit make_limit(const ProblemOptions& problem_options, const EngineOptions& engine_options,
                 const SgdOptions& sgd, const SgdState& start,
                 const std::vector<std::int64_t>& steps, const LimitOptions& options) {
  ProblemOptions with_p = problem_options;
  with_p.p = start.p();
  Problem problem(with_p);
  Limit out{problem, problem.frame().enter({start.m(), start.Lambda, start.b, start.v}), {}, {}};
  out.flow.rtol = options.rtol;
  out.flow.atol = options.atol;
  for (const std::int64_t step : steps) {
    out.flow.times.push_back(sgd.lr * static_cast<double>(step));
  }
  if (out.flow.times.size() < 2) out.flow.times.push_back(sgd.lr);
  out.flow.time = out.flow.times.back();
  out.flow.gradient_tolerance = 0;
  const bool noiseless = options.name == "flow";
  out.flow.integrator = noiseless ? "implicit" : options.name == "kappa" ? "explicit" : "map";
  out.flow.step = sgd.lr;
  EngineOptions engine = engine_options;
  if (!noiseless) {
    out.flow.kappa = sgd.lr * static_cast<double>(sgd.dim) / static_cast<double>(sgd.batch);
    // Only samples have the second moments that keep the noise.
    if (engine.engine == "factorised") engine.engine = "auto";
  }
  out.engine = make_flow_engine(out.problem, engine, out.flow, out.start);
  return out;
}

}  // namespace headflow
