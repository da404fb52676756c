#include <fmt/format.h>

#include "cli/measured.h"

namespace headflow::cli {
namespace {

void print_attention(const Dataset& all) {
  print_end(all);
  const Quantity &maps = all["attention"], &relevant = all["relevant"];
  const std::size_t H = maps.dimensions[1].size, L = maps.dimensions[2].size;
  for (std::size_t s = 0; s < maps.dimensions[0].size; ++s) {
    fmt::print("sequence {}: token {} is relevant\n", s + 1, relevant.values[s]);
    for (std::size_t h = 0; h < H; ++h) {
      fmt::print("  head {}:", h + 1);
      for (std::size_t l = 0; l < L; ++l) {
        const bool here = l + 1 == static_cast<std::size_t>(relevant.values[s]);
        fmt::print(" {}{:.3f}{}", here ? '[' : ' ', maps.values[(s * H + h) * L + l],
                   here ? ']' : ' ');
      }
      fmt::print("\n");
    }
  }
}

}  // namespace

const Command& attention_command() {
  static const Command command{
      "attention",
      "attention of trained heads on fresh sequences",
      "Trains to the end (as fixed-point), draws five sequences and prints the attention of each\n"
      "head on each token; brackets mark the relevant one.\n\n"
      "example:\n"
      "  headflow attention --activation softmax-1 --prior gaussian --nu 9 --tokens 5\n",
      keys_of_command("attention"),
      true,
      nullptr,
      [](Invocation& call) {
        return show_measures(call, {Measure::end, Measure::attention}, print_attention);
      }};
  return command;
}

}  // namespace headflow::cli
