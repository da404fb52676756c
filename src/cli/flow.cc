#include "dynamics/flow.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"
#include "io/atomic_file.h"
#include "io/result_file.h"

namespace headflow::cli {
namespace {

FlowSummary follow_flow(const Invocation& call, const Problem& problem, const Point& start,
                        std::unique_ptr<Engine>& engine, Trajectory& trajectory) {
  const Session& session = call.session;
  const Watched context(call, "flow");
  engine = make_flow_engine(problem, session.engine, session.flow, start, context);
  note_unused_samples(*engine, session, call.quiet);
  if (!call.quiet && !engine->reason().empty()) {
    fmt::print(stderr, "auto took {}\n", engine->reason());
  }
  return integrate_flow(*engine, start, session.flow, trajectory, context);
}

int run_flow(Invocation& call) {
  Session& session = call.session;
  session.flow.check();
  if (session.output.empty() && !call.json) {
    throw Error("flow: nothing to do with the result; give --output FILE.nc or --json");
  }
  if (!session.output.empty()) check_writable(session.output);
  settle_start(session, call.quiet);
  const Problem problem(session.problem);
  const Point start = session.flow_start(problem);
  check_engine(problem, session.engine);
  print_notes(problem, call.quiet);
  std::unique_ptr<Engine> engine;
  Trajectory trajectory;
  const FlowSummary summary = follow_flow(call, problem, start, engine, trajectory);
  if (!session.output.empty()) {
    write_flow_result(session.output, *engine, trajectory, summary,
                      {session.flow_configuration(), call.command_line, session.engine.seed});
  }
  if (call.json) {
    const Point end = problem.frame().leave(trajectory.point.back());
    const nlohmann::ordered_json out = {{"outcome", to_string(summary.outcome)},
                                        {"message", summary.message},
                                        {"time", trajectory.time.back()},
                                        {"loss", trajectory.loss.back()},
                                        {"loss_error", trajectory.loss_error.back()},
                                        {"gradient_norm", trajectory.gradient_norm.back()},
                                        {"gradient_error", trajectory.gradient_error.back()},
                                        {"point", to_json(end)},
                                        {"steps", summary.steps},
                                        {"evaluations", summary.evaluations},
                                        {"engine", engine->name()},
                                        {"engine_reason", engine->reason()},
                                        {"error_kind", to_string(engine->error_kind())},
                                        {"samples", engine->samples()},
                                        {"seed", session.engine.seed},
                                        {"seconds", summary.seconds},
                                        {"output", session.output}};
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet) {
    fmt::print(stderr, "{}\nloss {:.6f} +- {:.2g} at tau = {:g}\n", summary.brief(),
               trajectory.loss.back(), trajectory.loss_error.back(), trajectory.time.back());
    if (!session.output.empty()) fmt::print(stderr, "wrote {}\n", session.output);
  }
  if (summary.outcome == FlowOutcome::diverged) return kDiverged;
  if (summary.outcome == FlowOutcome::interrupted) return kInterrupted;
  return kSuccess;
}

}  // namespace

void note_unused_samples(const Engine& engine, const Session& session, bool quiet) {
  const auto given = [&](const char* key) { return session.keys.origin(key).starts_with("--"); };
  const auto unused = [&](const char* key, const std::string& why) {
    if (given(key)) print_note(fmt::format("{} is not used: {}", key, why), quiet);
  };
  const std::string name(engine.name());
  if (engine.sampled() && engine.reason().empty()) {
    unused("run.tolerance", "the engine " + name + " takes run.samples");
  }
  if (name != "qmc" && name != "factorised+qmc") {
    unused("run.randomisations", "the engine is " + name);
  }
  if (!engine.sampled()) unused("run.precision", "the engine is " + name);
  if (quiet || session.engine.samples == 0 || engine.sampled()) return;
  fmt::print(stderr,
             "headflow: note: run.samples is not used: the engine {} plans its nodes from "
             "run.tolerance\n",
             engine.name());
}

const Command& flow_command() {
  static const Command command{
      "flow",
      "integrate the flow of the order parameters",
      "Integrates dm/dtau = -grad_m E (and R, b, v) from noise, from a given point or from\n"
      "where a recorded run was (--init-from run.nc, --init-time), and writes\n"
      "the trajectory as netCDF (xarray.open_dataset reads it; docs/result_format.md).\n\n"
      "example:\n"
      "  headflow flow --tokens 4 --heads 2 --features 2 --nu 2,2 --time 100 --output run.nc\n",
      {"problem", "flow", "point", "run", "result.output", "program"},
      true,
      nullptr,
      run_flow};
  return command;
}

}  // namespace headflow::cli
