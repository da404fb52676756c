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
  const Config& config = call.config;
  const Watched context(call, "flow");
  engine = make_flow_engine(problem, config.run, config.flow, start, context);
  note_unused_samples(*engine, call);
  if (!call.quiet && !engine->reason().empty()) {
    fmt::print(stderr, "auto took {}\n", engine->reason());
  }
  return integrate_flow(*engine, start, config.flow, trajectory, context);
}

int run_flow(Invocation& call) {
  Config& config = call.config;
  config.flow.check();
  if (config.result.output.empty() && !call.json) {
    throw Error("flow: nothing to do with the result; give --output FILE.nc or --json");
  }
  if (!config.result.output.empty()) check_writable(config.result.output);
  settle_start(call);
  const Problem problem(config.problem);
  const Point start = flow_start(config, problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  std::unique_ptr<Engine> engine;
  Trajectory trajectory;
  const FlowSummary summary = follow_flow(call, problem, start, engine, trajectory);
  if (!config.result.output.empty()) {
    write_flow_result(config.result.output, *engine, trajectory, summary,
                      {config_text(config, {"problem", "run", "point", "flow"}), call.command_line,
                       config.run.seed});
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
                                        {"seed", config.run.seed},
                                        {"seconds", summary.seconds},
                                        {"output", config.result.output}};
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet) {
    fmt::print(stderr, "{}\nloss {:.6f} +- {:.2g} at tau = {:g}\n", summary.brief(),
               trajectory.loss.back(), trajectory.loss_error.back(), trajectory.time.back());
    if (!config.result.output.empty()) fmt::print(stderr, "wrote {}\n", config.result.output);
  }
  if (summary.outcome == FlowOutcome::diverged) return kDiverged;
  if (summary.outcome == FlowOutcome::interrupted) return kInterrupted;
  return kSuccess;
}

}  // namespace

void note_unused_samples(const Engine& engine, const Invocation& call) {
  const auto given = [&](const char* key) { return call.origins.flag(key); };
  const auto unused = [&](const char* key, const std::string& why) {
    if (given(key)) print_note(fmt::format("{} is not used: {}", key, why), call.quiet);
  };
  const std::string name(engine.name());
  if (engine.sampled() && engine.reason().empty()) {
    unused("run.tolerance", "the engine " + name + " takes run.samples");
  }
  if (name != "qmc" && name != "factorised+qmc") {
    unused("run.randomisations", "the engine is " + name);
  }
  if (!engine.sampled()) unused("run.precision", "the engine is " + name);
  if (call.quiet || call.config.run.samples == 0 || engine.sampled()) return;
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
