#include "sgd/limit.h"

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"

namespace headflow {

std::vector<std::string> limit_names() { return {"flow", "kappa", "first-order", "map"}; }

std::vector<std::string> checked_limits(const std::vector<std::string>& names) {
  const std::vector<std::string> known = limit_names();
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) == 0) {
      throw OptionError("compare.theory", in_quotes(name), one_of(known, name));
    }
    if (std::ranges::count(out, name) == 0) out.push_back(name);
  }
  if (out.empty()) throw OptionError("compare.theory", "[]", one_of(known, ""));
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

Limit make_limit(const ProblemOptions& problem_options, const EngineOptions& engine_options,
                 const SgdOptions& sgd, const SgdState& start,
                 const std::vector<std::int64_t>& steps, const LimitOptions& options) {
  checked_limits({options.name});
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
  const bool dense = out.start.size() <= kMostUnknowns;
  out.flow.integrator = noiseless && dense                     ? "implicit"
                        : noiseless || options.name == "kappa" ? "explicit"
                                                               : options.name;  // map, first-order
  out.flow.step = sgd.lr;
  if (!noiseless) {
    out.flow.kappa = sgd.lr * static_cast<double>(sgd.dim) / static_cast<double>(sgd.batch);
  }
  out.engine = make_flow_engine(out.problem, engine_options, out.flow, out.start);
  return out;
}

}  // namespace headflow
