#include <fmt/format.h>

#include "cli/measured.h"

namespace headflow::cli {
namespace {

void print_pruning(const Dataset& all) {
  print_end(all);
  const Quantity &loss = all["pruned_loss"], &head = all["removed_head"];
  fmt::print("heads left  removed  loss\n");
  for (std::size_t i = 0; i < loss.values.size(); ++i) {
    fmt::print("{:>10}  {:>7}  {:.6f} +- {:.2g}\n", loss.values.size() - i,
               head.values[i] == 0 ? "-" : fmt::format("{}", head.values[i]), loss.values[i],
               loss.errors[i]);
  }
}

}  // namespace

const Command& prune_command() {
  static const Command command{
      "prune",
      "loss after removing trained heads, one by one",
      "Trains to the end (as fixed-point), then removes heads greedily, each time the one whose\n"
      "removal leaves the lowest loss. The output is rescaled by H / (heads left); b-softmax is\n"
      "normalised over the heads left.\n\n"
      "example:\n"
      "  headflow prune --prior gaussian --heads 4 --features 2 --nu 4 --tolerance 1e-4\n",
      keys_of_command("prune"),
      true,
      nullptr,
      [](Invocation& call) {
        return show_measures(call, {Measure::end, Measure::pruning}, print_pruning);
      }};
  return command;
}

}  // namespace headflow::cli
