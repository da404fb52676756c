// Rules that a task must keep, found out without computing it.

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"
#include "expectation/check_engine.h"
#include "experiments/measure_info.h"
#include "sgd/limit.h"

namespace headflow {
namespace {

void check_sgd(const Session& session) {
  ProblemOptions without_p = session.problem;
  without_p.p.reset();
  session.sgd.check(Problem(without_p), 1);
  if (session.sgd.runs != 1) {
    throw OptionError("sgd.runs", fmt::format("{}", session.sgd.runs),
                      "must be 1 in a sweep: runs are tasks, along an axis of run.seed");
  }
  if (session.sgd.loss != SgdLoss::batch) {
    throw OptionError("sgd.loss", in_quotes(session.sgd.loss),
                      "must be \"batch\" in a sweep; the command sgd has the population loss");
  }
  if (session.sgd.init == SgdInit::point) {
    static_cast<void>(session.point.make(Problem(session.problem)));
  } else if (session.problem.p) {
    throw OptionError("problem.p", parameter_text(*session.problem.p),
                      "is drawn with the start of SGD; give a start with sgd.init = \"point\"");
  }
}

void check_flow(const Session& session, const Problem& problem, bool to_the_end) {
  if (session.flow.integrator == Scheme::implicit ||
      (to_the_end && session.end_search == EndSearch::newton)) {
    check_unknowns(problem, to_the_end && session.end_search == EndSearch::newton
                                ? "end.search = \"newton\""
                                : "flow.integrator = \"implicit\"");
  }
  static_cast<void>(session.flow_start(problem));  // its shapes
  const bool samples =
      session.engine.engine == EngineName::mc || session.engine.engine == EngineName::qmc ||
      (session.engine.engine == EngineName::automatic && session.engine.samples > 0);
  if (session.flow.sampling == Sampling::redrawn && !samples) {
    throw OptionError("flow.sampling", in_quotes(session.flow.sampling),
                      "needs an engine with samples: run.engine = \"mc\" or \"qmc\"");
  }
}

}  // namespace

void check_task(const Session& session, const std::vector<std::string>& measures,
                bool point_is_set) {
  const Problem problem(session.problem);
  session.flow.check();
  session.check_end();
  checked_limits(session.theory);
  check_steps(session.compare_rtol, session.compare_atol);
  check_engine(problem, session.engine);
  const bool flow = std::ranges::any_of(measures, trains);
  const bool sgd = std::ranges::count(measures, "sgd") > 0;
  const bool to_the_end = std::ranges::any_of(measures, [](const std::string& one) {
    return trains(one) && one != "flow" && one != "phases";
  });
  if (flow) check_flow(session, problem, to_the_end);
  if (sgd) check_sgd(session);
  const bool from_point =
      (flow && session.flow.init == FlowInit::point) || (sgd && session.sgd.init == SgdInit::point);
  if (point_is_set && !from_point) {
    throw Error(fmt::format(
        "[point] is set, but nothing starts there: {}",
        flow  ? fmt::format("flow.init = {}, not \"point\"", in_quotes(session.flow.init))
        : sgd ? fmt::format("sgd.init = {}, not \"point\"", in_quotes(session.sgd.init))
              : "none of the measures trains"));
  }
}

}  // namespace headflow
