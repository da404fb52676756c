// Rules that a task must keep, found out without computing it.

#include <algorithm>

#include "analysis/hessian.h"
#include "core/error.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"
#include "expectation/check_engine.h"
#include "sgd/limit.h"
#include "study/measure_info.h"

namespace headflow {
namespace {

void check_sgd(const Config& config) {
  ProblemOptions without_p = config.problem;
  without_p.p.reset();
  config.sgd.check(Problem(without_p), 1);
  if (config.sgd.runs != 1) {
    throw OptionError("sgd.runs", fmt::format("{}", config.sgd.runs),
                      "must be 1 in a sweep: runs are tasks, along an axis of run.seed");
  }
  if (config.sgd.loss != SgdLoss::batch) {
    throw OptionError("sgd.loss", in_quotes(config.sgd.loss),
                      "must be \"batch\" in a sweep, which has no measure of the population loss");
  }
  if (config.sgd.init == SgdInit::point) {
    static_cast<void>(config.point.make(Problem(config.problem)));
  } else if (config.problem.p) {
    throw OptionError("problem.p", parameter_text(*config.problem.p),
                      "is drawn with the start of SGD; give a start with sgd.init = \"point\"");
  }
}

void check_flow(const Config& config, const Problem& problem, bool to_the_end) {
  if (config.flow.integrator == Scheme::implicit ||
      (to_the_end && config.end.search == EndSearch::newton)) {
    check_unknowns(problem, to_the_end && config.end.search == EndSearch::newton
                                ? "end.search = \"newton\""
                                : "flow.integrator = \"implicit\"");
  }
  if (to_the_end && config.end.search == EndSearch::newton) check_second_derivatives(problem);
  static_cast<void>(flow_start(config, problem));  // its shapes
  const bool samples = config.run.engine == EngineName::mc ||
                       config.run.engine == EngineName::qmc ||
                       (config.run.engine == EngineName::automatic && config.run.samples > 0);
  if (config.flow.sampling == Sampling::redrawn && !samples) {
    throw OptionError("flow.sampling", in_quotes(config.flow.sampling),
                      "needs an engine with samples: run.engine = \"mc\" or \"qmc\"");
  }
}

}  // namespace

void check_task(const Config& config, const Measures& measures, bool point_is_set) {
  const Problem problem(config.problem);
  config.flow.check();
  config.end.check();
  checked_limits(config.compare.theory);
  check_steps(config.compare.rtol, config.compare.atol);
  check_engine(problem, config.run);
  const bool flow = std::ranges::any_of(measures, trains);
  const bool sgd = std::ranges::count(measures, Measure::sgd) > 0;
  const bool to_the_end =
      std::ranges::any_of(measures, [](Measure one) { return source_of(one) == Source::end; });
  if (flow) check_flow(config, problem, to_the_end);
  if (sgd) check_sgd(config);
  if (std::ranges::count(measures, Measure::end) > 0) config.loss.check(problem);
  const bool from_point =
      (flow && config.flow.init == FlowInit::point) || (sgd && config.sgd.init == SgdInit::point);
  if (point_is_set && !from_point) {
    throw Error(
        fmt::format("[point] is set, but nothing starts there: {}",
                    flow ? fmt::format("flow.init = {}, not \"point\"", in_quotes(config.flow.init))
                    : sgd ? fmt::format("sgd.init = {}, not \"point\"", in_quotes(config.sgd.init))
                          : "none of the measures trains"));
  }
}

}  // namespace headflow
