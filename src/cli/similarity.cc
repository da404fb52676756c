#include <fmt/format.h>

#include "cli/measured.h"

namespace headflow::cli {
namespace {

void print_similarity(const Dataset& all) {
  print_end(all);
  const Quantity& cosine = all["similarity"];
  fmt::print("cosines of the angles between heads\n");
  for (std::size_t h = 0; h < cosine.dimensions[0].size; ++h) {
    for (std::size_t k = 0; k < cosine.dimensions[1].size; ++k) {
      fmt::print(" {:>8.5f}", cosine.values[h * cosine.dimensions[1].size + k]);
    }
    fmt::print("\n");
  }
}

}  // namespace

const Command& similarity_command() {
  static const Command command{
      "similarity",
      "cosines of the angles between trained heads",
      "Trains to the end (as fixed-point) and prints k_h . k_h' / (|k_h| |k_h'|).\n\n"
      "example:\n"
      "  headflow similarity --heads 2 --nu 4,1\n",
      keys_of_command("similarity"),
      true,
      nullptr,
      [](Invocation& call) {
        return show_measures(call, {Measure::end, Measure::similarity}, print_similarity);
      }};
  return command;
}

}  // namespace headflow::cli
