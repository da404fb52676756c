#include <fmt/format.h>

#include <cmath>

#include "cli/measured.h"

namespace headflow::cli {
namespace {

constexpr double kAtRest = 1e-3;  // gradient of a flow that has learnt what it will

void print_phases(const Dataset& all) {
  const Quantity &variance = all["variance"], &tau = all["tau_s"], &crossings = all["excursions"],
                 &signs = all["signs"];
  const double mean = all.number("tau_u");
  if (!std::isnan(mean)) fmt::print("tau_u  {:.5g}  (the heads' mean grows)\n", mean);
  const Quantity& vectors = all["directions"];
  fmt::print("direction  variance  tau_s      excursions  in the hidden directions\n");
  for (std::size_t f = 0; f < tau.values.size(); ++f) {
    std::string vector;
    for (std::size_t k = 0; k < tau.values.size(); ++k) {
      vector += fmt::format(" {:.3g}", vectors.values[f * tau.values.size() + k]);
    }
    fmt::print("{:>9}  {:>8.4g}  {:<9}  {:<10} {}\n", f + 1, variance.values[f],
               std::isnan(tau.values[f]) ? "-" : fmt::format("{:.5g}", tau.values[f]),
               crossings.values[f], vector);
  }
  fmt::print("signs of the heads along the directions at the end of the flow (.: not learnt)\n");
  for (std::size_t h = 0; h < signs.dimensions[0].size; ++h) {
    fmt::print("  head {}: ", h + 1);
    for (std::size_t f = 0; f < signs.dimensions[1].size; ++f) {
      const double x = signs.values[h * signs.dimensions[1].size + f];
      fmt::print(" {}", std::isnan(tau.values[f]) ? '.' : x > 0 ? '+' : x < 0 ? '-' : '0');
    }
    fmt::print("\n");
  }
  const double gradient = all.number("flow_gradient");
  if (gradient > kAtRest) {
    fmt::print("the flow still moves (gradient {:.2g}): a longer --time may change all this\n",
               gradient);
  }
}

}  // namespace

const Command& phases_command() {
  static const Command command{
      "phases",
      "when each direction is learnt along the flow",
      "Follows the flow and prints, for each eigenvector of Cov theta (largest variance first):\n"
      "tau_s, when the spread of the heads along it first reaches half of its largest value; its\n"
      "excursions (heads that change sides); the sign of each head at the end. tau_u is when the\n"
      "heads' mean along E theta first reaches half of its largest value.\n\n"
      "example:\n"
      "  headflow phases --prior gaussian --heads 4 --nu 8,2 --integrator implicit --time 3000\n"
      "    --spacing log --tolerance 1e-4\n",
      keys_of_command("phases"),
      true,
      nullptr,
      [](Invocation& call) { return show_measures(call, {Measure::phases}, print_phases); }};
  return command;
}

}  // namespace headflow::cli
