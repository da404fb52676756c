#include "study/computations.h"

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "expectation/check_engine.h"
#include "study/compute.h"
#include "study/measures.h"
#include "study/settings.h"

namespace headflow {
namespace {

/// Measures of a sweep, as a computation of their own.
template <Measure... measures>
Dataset measured(const Config& config, const Context& context) {
  config.flow.check();
  config.end.check();
  check_engine(noted_problem(config.problem, context), config.run);
  std::optional<Dataset> out = measure_task(config, {measures...}, context);
  if (!out) throw Interrupted();
  return std::move(*out);
}

Dataset sgd(const Config& config, const Context& context) { return compute_sgd(config, context); }
Dataset comparison(const Config& config, const Context& context) {
  return compute_comparison(config, context);
}

}  // namespace

const std::vector<Computation>& computations() {
  static const Names of_ends = {"problem", "point", "flow", "end", "run"};
  static const std::vector<Computation> all = {
      {"loss", {"problem", "point", "run", "loss"}, compute_loss},
      {"bayes", {"problem", "run"}, compute_bayes},
      {"flow", {"problem", "flow", "point", "run"}, compute_flow, true},
      {"sgd", {"problem", "sgd", "point", "run"}, sgd},
      {"compare", {"problem", "sgd", "compare", "point", "run"}, comparison},
      {"hessian",
       {"problem", "hessian", "point", "flow.init_from", "flow.init_run", "flow.init_time",
        "sgd.dim", "run"},
       compute_hessian},
      {"fixed-point",
       {"problem", "point", "flow.init*", "flow.rtol", "flow.atol", "end.gradient", "run"},
       compute_fixed_point,
       true},
      {"minima", {"problem", "minima", "flow.init_noise", "run"}, compute_minima},
      {"phases", {"problem", "point", "flow", "run"}, measured<Measure::phases>, true},
      {"prune", of_ends, measured<Measure::end, Measure::pruning>, true},
      {"similarity", of_ends, measured<Measure::end, Measure::similarity>, true},
      {"attention", of_ends, measured<Measure::end, Measure::attention>, true}};
  return all;
}

const Computation& find_computation(std::string_view name) {
  const auto at = std::ranges::find(computations(), name, &Computation::name);
  if (at != computations().end()) return *at;
  Names names;
  for (const Computation& one : computations()) names.emplace_back(one.name);
  throw Error(fmt::format("there is no computation {}; there are {}", in_quotes(name),
                          fmt::join(names, ", ")));
}

}  // namespace headflow
