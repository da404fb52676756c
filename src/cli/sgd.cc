#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "cli/sgd_runs.h"
#include "cli/show.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/atomic_file.h"

namespace headflow::cli {
namespace {

void print_summary(const Dataset& result) {
  const Dataset end = result.last("time");
  const Quantity& loss = end["batch_loss"];
  fmt::print(
      stderr,
      "{} after {} steps (tau = {:g}), {:.2f} s; batch loss {:.6g} {}{}; "
      "kappa = lr D / batch = {:.3g}\n",
      result.text("outcome"), result.count("steps"), end.number("time"), result.real("seconds"),
      loss.values[0],
      std::isfinite(loss.errors[0]) ? fmt::format("+- {:.2g}", loss.errors[0]) : "(error unknown)",
      loss.values.size() > 1 ? " (run 1)" : "", result.real("kappa"));
}

int run_sgd(Invocation& call) {
  Config& config = call.config;
  settle_sgd(call);
  require_use_of_result(call);
  if (!config.result.save_init.empty()) check_writable(config.result.save_init);
  for (const char* key : {"run.engine", "run.samples", "run.tolerance"}) {
    if (config.sgd.loss == SgdLoss::population || !call.origins.flag(key)) continue;
    print_note(fmt::format("{} is not used without sgd.loss = \"population\"", key), call.quiet);
  }
  std::optional<Dataset> result = run_with_store(call, "sgd", compute_sgd);
  if (!result) return kInterrupted;
  put_out(call, *result, "time");
  if (!call.quiet) print_summary(*result);
  return sgd_exit(call, *result);
}

}  // namespace

const Command& sgd_command() {
  static const Command command{
      "sgd",
      "train by SGD at finite dimension D, exactly",
      "Online SGD of the heads at dimension D: fresh batches, learning rate lr. The method "
      "reduced\n"
      "steps the overlaps m, q, b, v as the Markov chain that they are, exact in law at any D and\n"
      "at a cost that does not depend on D; direct draws every sample in D dimensions.\n"
      "Writes the runs as netCDF (docs/result_format.md). A run that was interrupted or killed "
      "goes\n"
      "on where it was when the same command is given again.\n\n"
      "example:\n"
      "  headflow sgd --activation softmax --prior flipping --tokens 10 --heads 2 --features 2\n"
      "    --nu 2,2 --dim 10000 --batch 10000 --lr 0.02 --steps 5000 --seed 3 --output run.nc\n",
      keys_of_command("sgd", "result"),
      true,
      nullptr,
      run_sgd};
  return command;
}

}  // namespace headflow::cli
