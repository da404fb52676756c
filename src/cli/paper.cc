#include "experiments/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/sgd_runs.h"
#include "core/error.h"
#include "io/result_file.h"

namespace headflow::cli {
namespace {

void apply(const PaperRun& run, Keys& keys) {
  for (const auto& [name, text] : run.settings) {
    for (const Key& key : keys.all()) {
      if (key.full_name() == name) keys.set_text(key, text, "run " + run.name);
    }
  }
}

/// A flow into its result file.
int run_flow(Invocation& call, const std::string& label) {
  const Session& session = call.session;
  const Problem problem(session.problem);
  const Point start = session.flow_start(problem);
  const std::unique_ptr<Engine> engine =
      make_flow_engine(problem, session.engine, session.flow, start);
  Trajectory trajectory;
  const FlowSummary summary =
      run_with_progress(*engine, start, session.flow, trajectory, label, call.quiet);
  if (summary.outcome == FlowOutcome::interrupted) return kInterrupted;
  write_flow_result(session.output, *engine, trajectory, summary,
                    {session.flow_configuration(), call.command_line, session.engine.seed});
  if (!call.quiet) fmt::print(stderr, "{}: {}\n", label, summary.brief());
  return summary.outcome == FlowOutcome::diverged ? kDiverged : kSuccess;
}

int run(Invocation& call) {
  const std::vector<PaperRun> runs = paper_runs(call.only);
  std::string folder = call.session.output;
  if (folder.empty()) folder = "results/paper";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(folder, fmt::format("cannot be made: {}", error.message()));

  auto report = nlohmann::ordered_json::array();
  int worst = kSuccess;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Invocation one;
    apply(runs[i], one.session.keys);
    one.session.engine.threads = call.session.engine.threads;
    one.session.output = folder + "/" + runs[i].name + ".nc";
    one.command_line = call.command_line;
    one.quiet = call.quiet;
    const std::string label = fmt::format("[{}/{}] {}", i + 1, runs.size(), runs[i].name);
    const auto begin = std::chrono::steady_clock::now();
    const bool compares = runs[i].command == "compare";
    if (is_result_of(one.session.output, compares ? one.session.compare_configuration()
                                                  : one.session.flow_configuration())) {
      if (!call.quiet) fmt::print(stderr, "{}: up to date\n", label);
      report.push_back(
          {{"run", runs[i].name}, {"file", one.session.output}, {"outcome", "up to date"}});
      continue;
    }
    const int code = compares ? run_comparison(one, label) : run_flow(one, label);
    if (code == kInterrupted) {
      fmt::print(stderr, "interrupted; run the same command again to go on with {}\n",
                 runs[i].name);
      return code;
    }
    worst = std::max(worst, code);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    report.push_back({{"run", runs[i].name},
                      {"file", one.session.output},
                      {"outcome", code == kSuccess ? "done" : "diverged"},
                      {"seconds", seconds}});
  }
  if (call.json) fmt::print("{}\n", report.dump(2));
  if (!call.quiet) fmt::print(stderr, "results in {}\n", folder);
  return worst;
}

}  // namespace

const Command& paper_command() {
  static const Command command{
      "paper",
      "compute the data of the paper's figures",
      "Runs what the paper's figures need (now: 1, 2, 9, 10, 15 and finite-rate) and writes one "
      "result file a run into\n"
      "the folder given by --output (results/paper). Runs that are up to date are kept.\n"
      "make paper does this and draws the pictures.\n",
      {"result.output", "program"},
      false,
      "Only these figures, as in --only 2,15",
      run};
  return command;
}

}  // namespace headflow::cli
