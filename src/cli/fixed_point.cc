#include "analysis/fixed_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "expectation/check_engine.h"

namespace headflow::cli {
namespace {

int run_fixed_point(Invocation& call) {
  Config& config = call.config;
  config.flow.check();
  settle_start(call);
  const Problem problem(config.problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  config.end.check();
  const Point start = flow_start(config, problem);
  FixedPointOptions options;
  options.gradient = config.end.gradient;
  options.rtol = config.flow.rtol;
  options.atol = config.flow.atol;
  const FixedPoint found =
      find_fixed_point(problem, config.run, start, options, Watched(call, "fixed-point"));
  if (call.json) {
    const nlohmann::ordered_json out = {
        {"converged", found.converged},
        {"kind", to_string(found.stability)},
        {"loss", found.loss},
        {"loss_error", found.loss_error},
        {"gradient_norm", found.gradient_norm},
        {"index", to_json(found.index)},
        {"escape_rate", found.escape_rate},
        {"zero_modes", to_json(found.zero_modes)},
        {"symmetries", to_json(found.symmetries)},
        {"unused_heads", to_json(found.unused_heads)},
        {"eigenvalues", std::vector<double>(found.eigenvalues.begin(), found.eigenvalues.end())},
        {"eigenvalue_error", found.error},
        {"point", to_json(problem.frame().leave(found.point))},
        {"time", found.time},
        {"newton_distance", found.newton_distance},
        {"evaluations", found.evaluations},
        {"engine", found.engine},
        {"error_kind", to_string(found.error_kind)},
        {"seed", config.run.seed},
        {"message", found.message}};
    fmt::print("{}\n", json_text(out));
  } else {
    fmt::print("{}\nloss  {:.10f} +- {:.2g}  ({})\n", found.message, found.loss, found.loss_error,
               to_string(found.error_kind));
    fmt::print("gradient {:.2g}; ", found.gradient_norm);
    if (found.index) {
      fmt::print("index {}; {} zero modes, {} of them symmetries; {} unused heads\n", *found.index,
                 found.zero_modes.value(), found.symmetries.value(), found.unused_heads.value());
    } else {
      fmt::print("index unknown: the Hessian was not looked at\n");
    }
    print_point(problem, found.point);
  }
  if (interrupted()) return kInterrupted;
  return found.converged ? kSuccess : kDiverged;
}

}  // namespace

void print_point(const Problem& problem, const Point& in_frame) {
  const Point shown = problem.frame().leave(in_frame);
  for (int h = 0; h < problem.H(); ++h) {
    fmt::print("  head {}: m", h + 1);
    for (const double x : shown.m.row(h)) fmt::print(" {:>11.7f}", x);
    fmt::print("   |R_h| {:.2g}", shown.R.row(h).norm());
    for (const BlockLayout::Entry& e : shown.blocks.entries()) {
      if (!e.per_head()) continue;
      const Eigen::Index row = e.size / problem.H();
      fmt::print("   {}", e.info.name);
      for (const double x : shown.blocks[e.info.name].segment(h * row, row)) {
        fmt::print(" {:>11.7f}", x);
      }
    }
    fmt::print("\n");
  }
  for (const BlockLayout::Entry& e : shown.blocks.entries()) {
    if (e.per_head()) continue;
    fmt::print("  {}", e.info.name);
    for (const double x : shown.blocks[e.info.name]) fmt::print(" {:.7f}", x);
    fmt::print("\n");
  }
}

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
      {"problem", "point", "flow.init*", "flow.rtol", "flow.atol", "end.gradient", "run",
       "program"},
      true,
      nullptr,
      run_fixed_point};
  return command;
}

}  // namespace headflow::cli
