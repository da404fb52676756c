#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "io/atomic_file.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

void print_risk(const Dataset& result, int tokens) {
  const double risk = result.number("risk"), error = result.error("risk");
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(error + 1e-13))), 3, 12);
  const bool sampled = result.text("error_kind") == to_string(ErrorKind::standard_error);
  fmt::print("Bayes risk     {:.{}f} +- {:.2g}  ({})\n", risk, digits, error,
             result.text("error_kind"));
  fmt::print("uniform guess  {:.{}f}\n", 1.0 - 1.0 / tokens, digits);
  fmt::print("{}, {} {}, {:.3f} s\n", result.text("method"), result.count("nodes"),
             sampled ? "tokens" : "nodes", result.real("seconds"));
  if (!result.flag("tolerance_met")) {
    fmt::print("the tolerance of {:g} was not reached\n", result.real("tolerance"));
  }
}

int run_bayes(Invocation& call) {
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  for (const char* key : {"run.engine", "run.samples", "run.randomisations"}) {
    if (!call.origins.flag(key)) continue;
    print_note(fmt::format("{} is not used: the Bayes risk has methods of its own", key),
               call.quiet);
  }
  Dataset result = [&] {
    const Elapsed elapsed(Progress::detect(call.quiet), "bayes: working");
    return compute_bayes(call.config, Watched(call, "bayes"));
  }();
  put_out(call, result);
  if (!call.json) print_risk(result, call.config.problem.tokens);
  return kSuccess;
}

}  // namespace

const Command& bayes_command() {
  static const Command command{
      "bayes",
      "Bayes risk: the least loss of any attention",
      "The Bayes risk of a problem: the loss of the posterior P(eps = l | X), the least that any\n"
      "function of the sequence can have. Depends on prior, p, tokens and features only.\n\n"
      "example:\n"
      "  headflow bayes point.toml --tolerance 1e-9 --json\n"
      "where point.toml holds\n"
      "  [problem]\n"
      "  prior = \"flipping\"\n"
      "  tokens = 4\n"
      "  features = 2\n"
      "  nu = [2.0, 2.0]\n",
      keys_of_command("bayes"),
      true,
      nullptr,
      run_bayes};
  return command;
}

}  // namespace headflow::cli
