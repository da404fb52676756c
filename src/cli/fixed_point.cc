#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "io/atomic_file.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

void print_fixed_point(const Dataset& result) {
  fmt::print("{}\nloss  {:.10f} +- {:.2g}  ({})\n", result.text("message"), result.number("loss"),
             result.error("loss"), result.text("error_kind"));
  fmt::print("gradient {:.2g}; ", result.number("gradient_norm"));
  if (std::isnan(result.number("index"))) {
    fmt::print("index unknown: the Hessian was not looked at\n");
  } else {
    fmt::print("index {}; {} zero modes, {} of them symmetries; {} unused heads\n",
               result.number("index"), result.number("zero_modes"), result.number("symmetries"),
               result.number("unused_heads"));
  }
  print_point(result);
}

int run_fixed_point(Invocation& call) {
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  call.config.flow.check();
  settle_start(call);
  Dataset result = compute_fixed_point(call.config, Watched(call, "fixed-point"));
  put_out(call, result);
  if (!call.json) print_fixed_point(result);
  if (interrupted()) return kInterrupted;
  return result.flag("converged") ? kSuccess : kDiverged;
}

}  // namespace

const Command& fixed_point_command() {
  static const Command command{
      "fixed-point",
      "where the flow ends, and whether that is a minimum",
      "Follows the flow from noise or a given start into a basin (implicit, past saddles), takes "
      "the\n"
      "last steps by Newton's method, and looks at the Hessian: a minimum, or a saddle and how\n"
      "unstable it is. Directions along which the loss cannot change are recognised.\n\n"
      "example:\n"
      "  headflow fixed-point configs/flow.toml --seed 1 --json\n",
      keys_of_command("fixed-point"),
      true,
      nullptr,
      run_fixed_point};
  return command;
}

}  // namespace headflow::cli
