#include "analysis/minima.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"

namespace headflow::cli {
namespace {

int run_minima(Invocation& call) {
  const Config& config = call.config;
  const Problem problem(config.problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  if (config.minima.starts < 1 || config.minima.starts > 1'000'000) {
    throw OptionError("minima.starts", fmt::format("{}", config.minima.starts),
                      "must be from 1 to 10^6");
  }
  config.flow.check_start();
  const MinimaOptions options{config.minima.starts, config.flow.noise(), config.run.seed};
  const Minima minima = find_minima(problem, config.run, options, Watched(call, "minima"));
  const double best = minima.found.empty() ? 0.0 : minima.found.front().end.loss;
  if (call.json) {
    auto all = nlohmann::ordered_json::array();
    for (const Minimum& m : minima.found) {
      all.push_back({{"loss", m.end.loss},
                     {"loss_error", m.end.loss_error},
                     {"gradient_norm", m.end.gradient_norm},
                     {"kind", to_string(m.end.stability)},
                     {"index", to_json(m.end.index)},
                     {"zero_modes", to_json(m.end.zero_modes)},
                     {"starts", m.starts},
                     {"share", static_cast<double>(m.starts) / std::max(1, minima.starts)},
                     {"paper_starts", m.paper_starts},
                     {"reached_from_noise", m.paper_starts > 0},
                     {"share_from_noise",
                      static_cast<double>(m.paper_starts) / std::max(1, minima.paper_starts)},
                     {"above_best", m.end.loss - best},
                     {"point", to_json(problem.frame().leave(m.end.point))}});
    }
    const nlohmann::ordered_json out = {{"minima", all},
                                        {"starts", minima.starts},
                                        {"paper_starts", minima.paper_starts},
                                        {"failed", minima.failed},
                                        {"seed", config.run.seed}};
    fmt::print("{}\n", json_text(out));
  } else {
    fmt::print("{:>14}  {:>8}  {:>5}  {:>6}  {:>10}  {}\n", "loss", "+-", "index", "starts",
               "of the law", "rows of m");
    for (const Minimum& m : minima.found) {
      std::string rows;
      const Point point = problem.frame().leave(m.end.point);
      for (const auto& row : point.m.rowwise()) {
        std::string text;
        for (const double x : row) text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", x);
        rows += fmt::format("{}({})", rows.empty() ? "" : " ", text);
      }
      for (const BlockLayout::Entry& e : point.blocks.entries()) {
        std::string text;
        for (const double x : point.blocks[e.info.name]) {
          text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", x);
        }
        rows += fmt::format("; {} ({})", e.info.name, text);
      }
      fmt::print("{:>14.9f}  {:>8.1e}  {:>5}  {:>6}  {:>10}  {}\n", m.end.loss, m.end.loss_error,
                 m.end.index.value(), m.starts, m.paper_starts,
                 m.end.stability == Stability::saddle ? "a saddle: " + rows : rows);
    }
    for (const Minimum& m : minima.found) {
      if (m.paper_starts == 0 || m.end.loss <= best + m.end.loss_error) continue;
      fmt::print(
          "{} of {} trainings from the paper's initial law end {:.3g} above the best found\n",
          m.paper_starts, minima.paper_starts, m.end.loss - best);
    }
    fmt::print(
        "{} starts, {} of them from the paper's initial law (of the law); {} did not arrive\n",
        minima.starts, minima.paper_starts, minima.failed);
  }
  return interrupted() ? kInterrupted : kSuccess;
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
                               {"problem", "minima", "flow.init_noise", "run", "program"},
                               true,
                               nullptr,
                               run_minima};
  return command;
}

}  // namespace headflow::cli
