#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "cli/sgd_runs.h"
#include "cli/show.h"
#include "core/error.h"
#include "io/atomic_file.h"

namespace headflow::cli {
namespace {

/// How far SGD is from each theory.
void print_deviations(const Dataset& result, const Config& config) {
  const auto at = [&](const char* name, std::size_t i) { return result[name].values[i]; };
  const std::vector<std::string>& theories = result["theory"].texts;
  const double times = static_cast<double>(result["time"].values.size());
  for (std::size_t i = 0; i < theories.size(); ++i) {
    const double compared = at("times_compared", i);
    fmt::print(stderr,
               "compare: SGD - {}: m rms {:.2g}, largest {:.2g}; q rms {:.2g}, largest {:.2g}; "
               "loss{} rms {:.2g}{}\n",
               theories[i], at("rms_m", i), at("largest_m", i), at("rms_q", i), at("largest_q", i),
               result.find("loss") ? "" : " of a batch", at("rms_loss", i),
               compared == times
                   ? ""
                   : fmt::format(" (the theory ended after {} of {} times)", compared, times));
  }
  const double kappa = result.real("kappa");
  const bool flow_only = config.compare.theory == std::vector<LimitKind>{LimitKind::flow};
  fmt::print(stderr, "compare: D^-1/2 = {:.2g}, kappa = lr D / batch = {:.3g}{}\n",
             1 / std::sqrt(static_cast<double>(config.sgd.dim)), kappa,
             kappa > 0.1 && flow_only
                 ? ": not small, so SGD does not follow gradient flow; --theory flow,kappa,map "
                   "has its limits, a larger batch is nearer to the flow"
                 : "");
}

int run_compare(Invocation& call) {
  const std::string& output = call.config.result.output;
  settle_sgd(call);
  if (!output.empty()) check_writable(output);
  if (output.empty() && !call.json && call.quiet) {
    throw Error("nothing to do with the result; give --output FILE.nc or --json");
  }
  std::optional<Dataset> result = run_with_store(call, "compare", compute_comparison);
  if (!result) return kInterrupted;
  if (result->text("outcome") != to_string(SgdOutcome::interrupted)) {
    put_out(call, *result, "time");
    if (!call.quiet) print_deviations(*result, call.config);
  }
  return sgd_exit(call, *result);
}

}  // namespace

const Command& compare_command() {
  static const Command command{
      "compare",
      "SGD at finite D laid over its limit",
      "Trains by SGD (as the command sgd) and integrates the flow from the very start of each "
      "run,\n"
      "m, R and p included; prints how far the two are apart and writes both into one file.\n"
      "With --theory flow,kappa,map also the limits at a finite learning rate, which keep the "
      "noise\n"
      "of the gradient: the flow with kappa = lr dim / batch, and its one-step map.\n\n"
      "example:\n"
      "  headflow compare --tokens 5 --heads 2 --features 2 --nu 2,2 --dim 10000 --batch 10000\n"
      "    --lr 0.02 --tau 50 --runs 3 --output compare.nc\n",
      keys_of_command("compare", "result"),
      true,
      nullptr,
      run_compare};
  return command;
}

}  // namespace headflow::cli
