#include "expectation/check_engine.h"
#include "study/compute.h"
#include "study/keys.h"
#include "study/overlaps.h"
#include "study/settings.h"

namespace headflow {

Dataset flow_dataset(const Engine& engine, const Trajectory& run, const FlowSummary& summary) {
  const Problem& problem = engine.problem();
  const ErrorKind kind = engine.error_kind();
  const Dimension time{"time", run.time.size()};
  Dataset out{"headflow-flow", "headflow: flow of the order parameters", {}, {}, {}};
  add_time(out, run.time);
  add_p(out, problem.p());
  add_points(out, problem, time, {{Part::m, Part::R, Part::q, Part::r, Part::blocks}}, run.point);
  out.add("loss", "population loss", {time}, run.loss).with_errors(run.loss_error, kind);
  Quantity& gradient =
      out.add("gradient_norm", "Euclidean norm of the gradient of the loss in all that is trained",
              {time}, run.gradient_norm);
  gradient.with_errors(run.gradient_error, kind);
  gradient.error_name = "gradient_error";
  set_engine(out, engine);
  out.set("outcome", std::string(to_string(summary.outcome)));
  out.set("outcome_message", summary.message);
  out.set("steps", summary.steps);
  out.set("evaluations", summary.evaluations);
  out.set("seconds", summary.seconds);
  return out;
}

Dataset compute_flow(const Config& config, const Context& context) {
  config.flow.check();
  const Problem problem = noted_problem(config.problem, context);
  const Point start = flow_start(config, problem);
  check_engine(problem, config.run);
  const auto engine = make_flow_engine(problem, config.run, config.flow, start, context);
  Trajectory run;
  const FlowSummary summary = integrate_flow(*engine, start, config.flow, run, context);
  Dataset out = flow_dataset(*engine, run, summary);
  out.provenance = {config_text(config, {"problem", "run", "point", "flow"}), "", config.run.seed};
  return out;
}

}  // namespace headflow
