#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

int run_flow(Invocation& call) {
  call.config.flow.check();
  require_use_of_result(call);
  settle_start(call);
  Dataset result = compute_flow(call.config, Watched(call, "flow"));
  note_unused_samples(result, call);
  put_out(call, result, "time");
  const std::string outcome = result.text("outcome");
  if (!call.quiet) {
    const std::string reason = result.text("engine_reason");
    if (!reason.empty()) fmt::print(stderr, "auto took {}\n", reason);
    const Dataset end = result.last("time");
    fmt::print(stderr, "{}: {} ({} steps, {} evaluations, {:.2f} s)\n", outcome,
               result.text("outcome_message"), result.count("steps"), result.count("evaluations"),
               result.real("seconds"));
    fmt::print(stderr, "loss {:.6f} +- {:.2g} at tau = {:g}\n", end.number("loss"),
               end.error("loss"), end.number("time"));
  }
  if (outcome == to_string(FlowOutcome::diverged)) return kDiverged;
  return outcome == to_string(FlowOutcome::interrupted) ? kInterrupted : kSuccess;
}

}  // namespace

const Command& flow_command() {
  static const Command command{
      "flow",
      "integrate the flow of the order parameters",
      "Integrates dm/dtau = -grad_m E (and R, b, v) from noise, from a given point or from\n"
      "where a recorded run was (--init-from run.nc, --init-time), and writes\n"
      "the trajectory as netCDF (xarray.open_dataset reads it; docs/result_format.md).\n\n"
      "example:\n"
      "  headflow flow --tokens 4 --heads 2 --features 2 --nu 2,2 --time 100 --output run.nc\n",
      keys_of_command("flow"),
      true,
      nullptr,
      run_flow};
  return command;
}

}  // namespace headflow::cli
