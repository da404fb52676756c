#include "theory/bayes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"

namespace headflow::cli {
namespace {

int run_bayes(Invocation& call) {
  const Config& config = call.config;
  const Problem problem(config.problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  for (const char* key : {"run.engine", "run.samples", "run.randomisations"}) {
    if (!call.origins.flag(key)) continue;
    print_note(fmt::format("{} is not used: the Bayes risk has methods of its own", key),
               call.quiet);
  }
  const auto begin = std::chrono::steady_clock::now();
  const BayesRisk result = [&] {
    const Elapsed elapsed(Progress::detect(call.quiet), "bayes: working");
    return bayes_risk(problem, {.tolerance = config.run.tolerance, .seed = config.run.seed},
                      Watched(call, "bayes"));
  }();
  if (!std::isfinite(result.risk)) {
    throw Error("the Bayes risk is not finite: the numbers of [problem] are too large for doubles");
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  if (call.json) {
    const nlohmann::ordered_json out = {{"risk", result.risk},
                                        {"risk_error", result.error},
                                        {"error_kind", to_string(result.error_kind)},
                                        {"method", result.method},
                                        {"tolerance", config.run.tolerance},
                                        {"tolerance_met", result.tolerance_met},
                                        {"seconds", seconds}};
    fmt::print("{}\n", json_text(out));
    return kSuccess;
  }
  const int digits =
      std::clamp(static_cast<int>(std::ceil(-std::log10(result.error + 1e-13))), 3, 12);
  fmt::print("Bayes risk     {:.{}f} +- {:.2g}  ({})\n", result.risk, digits, result.error,
             to_string(result.error_kind));
  fmt::print("uniform guess  {:.{}f}\n", 1.0 - 1.0 / problem.L(), digits);
  fmt::print("{}, {} {}, {:.3f} s\n", result.method, result.nodes,
             result.method.starts_with("sampling") ? "tokens" : "nodes", seconds);
  if (!result.tolerance_met) {
    fmt::print("the tolerance of {:g} was not reached\n", config.run.tolerance);
  }
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
      {"problem", "run", "program"},
      true,
      nullptr,
      run_bayes};
  return command;
}

}  // namespace headflow::cli
