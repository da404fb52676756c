#include "experiments/paper.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/json.h"
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
    Session session;
    apply(runs[i], session.keys);
    session.engine.threads = call.session.engine.threads;
    const std::string path = folder + "/" + runs[i].name + ".nc";
    const std::string configuration = session.flow_configuration();
    const std::string label = fmt::format("[{}/{}] {}", i + 1, runs.size(), runs[i].name);
    if (is_result_of(path, configuration)) {
      if (!call.quiet) fmt::print(stderr, "{}: up to date\n", label);
      report.push_back({{"run", runs[i].name}, {"file", path}, {"outcome", "up to date"}});
      continue;
    }
    const Problem problem(session.problem);
    const Point start = session.flow_start(problem);
    const std::unique_ptr<Engine> engine =
        make_flow_engine(problem, session.engine, session.flow, start);
    Trajectory trajectory;
    const FlowSummary summary =
        run_with_progress(*engine, start, session.flow, trajectory, label, call.quiet);
    if (summary.outcome == FlowOutcome::interrupted) {
      fmt::print(stderr, "interrupted; run the same command again to go on with {}\n",
                 runs[i].name);
      return kInterrupted;
    }
    if (summary.outcome == FlowOutcome::diverged) worst = kDiverged;
    write_flow_result(path, *engine, trajectory, summary,
                      {configuration, call.command_line, session.engine.seed});
    if (!call.quiet) fmt::print(stderr, "{}: {}\n", label, summary.brief());
    report.push_back({{"run", runs[i].name},
                      {"file", path},
                      {"outcome", to_string(summary.outcome)},
                      {"loss", trajectory.loss.back()},
                      {"loss_error", trajectory.loss_error.back()},
                      {"seconds", summary.seconds}});
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
      "Runs what the paper's figures need (now: 2 and 15) and writes one result file a run into\n"
      "the folder given by --output (results/paper). Runs that are up to date are kept.\n"
      "make paper does this and draws the pictures.\n",
      {"result", "program"},
      false,
      true,
      run};
  return command;
}

}  // namespace headflow::cli
