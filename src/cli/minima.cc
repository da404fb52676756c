#include "analysis/minima.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "io/atomic_file.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

void print_minima(const Dataset& result) {
  fmt::print("{:>14}  {:>8}  {:>5}  {:>6}  {:>10}  {}\n", "loss", "+-", "index", "starts",
             "of the law", "rows of m");
  const std::size_t found = result.find("loss") ? result["loss"].values.size() : 0;
  const auto at = [&](const char* name, std::size_t i) { return result[name].values[i]; };
  for (std::size_t i = 0; i < found; ++i) {
    const bool saddle = result["kind"].texts[i] == "saddle";
    fmt::print("{:>14.9f}  {:>8.1e}  {:>5}  {:>6}  {:>10}  {}{}\n", at("loss", i),
               result["loss"].errors[i], at("index", i), at("starts", i), at("paper_starts", i),
               saddle ? "a saddle: " : "", point_text(result, i));
  }
  for (std::size_t i = 0; i < found; ++i) {
    if (at("paper_starts", i) == 0 || at("above_best", i) <= result["loss"].errors[i]) continue;
    fmt::print("{} of {} trainings from the paper's initial law end {:.3g} above the best found\n",
               at("paper_starts", i), result.count("paper_starts"), at("above_best", i));
  }
  fmt::print("{} starts, {} of them from the paper's initial law (of the law); {} did not arrive\n",
             result.count("starts"), result.count("paper_starts"), result.count("failed"));
}

int run_minima(Invocation& call) {
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  Dataset result = compute_minima(call.config, Watched(call, "minima"));
  put_out(call, result);
  if (!call.json) print_minima(result);
  const bool whole = result.text("outcome") != to_string(MinimaOutcome::interrupted);
  return whole ? kSuccess : kInterrupted;
}

}  // namespace

const Command& minima_command() {
  static const Command command{"minima",
                               "the distinct ends of training, from many starts",
                               "Follows the flow from many starts (the paper's initial law, noise "
                               "of several sizes, heads on\n"
                               "the means of the prior), finds where each ends as fixed-point "
                               "does, and counts every end once,\n"
                               "up to permutations of heads and symmetries of the prior.\n\n"
                               "example:\n"
                               "  headflow minima --activation softmax-1 --prior flipping "
                               "--features 4 --heads 4 --tokens 5\n"
                               "    --nu 10 --starts 50 --json\n",
                               keys_of_command("minima"),
                               true,
                               nullptr,
                               run_minima};
  return command;
}

}  // namespace headflow::cli
