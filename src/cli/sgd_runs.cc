#include "cli/sgd_runs.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/watch.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/checkpoint_file.h"
#include "io/result_file.h"

namespace headflow::cli {
namespace {

/// The start alone, for result.save_init.
void write_start(const Invocation& call, const Sgd& runs) {
  Dataset start = start_of_runs(call.config, runs);
  start.provenance.command = call.command_line;
  write_result(call.config.result.save_init, start);
}

/// A store without checkpoints, for a run without a result file.
class StartOnly final : public SgdStore {
 public:
  explicit StartOnly(const Invocation& call) : call_(call) {}
  void started(const Sgd& runs) override {
    if (!call_.config.result.save_init.empty()) write_start(call_, runs);
  }

 private:
  const Invocation& call_;
};

std::unique_ptr<SgdStore> store_of(const Invocation& call) {
  const Config& config = call.config;
  if (config.result.output.empty()) return std::make_unique<StartOnly>(call);
  std::function<void(const Sgd&)> start;
  if (!config.result.save_init.empty()) {
    start = [&call](const Sgd& runs) { write_start(call, runs); };
  }
  return std::make_unique<CheckpointStore>(
      config.result.output, config_text(config, {"problem", "run", "point", "sgd", "compare"}),
      config.result.checkpoint_seconds, start);
}

}  // namespace

void settle_sgd(Invocation& call) {
  Config& config = call.config;
  if (!(config.result.checkpoint_seconds >= 0)) {
    throw OptionError("result.checkpoint_seconds",
                      fmt::format("{}", config.result.checkpoint_seconds), "must not be negative");
  }
  const auto place = [](const std::string& path) {
    return std::filesystem::weakly_canonical(path);
  };
  if (!config.result.output.empty() && !config.result.save_init.empty() &&
      place(config.result.output) == place(config.result.save_init)) {
    throw OptionError("result.save_init", in_quotes(config.result.save_init),
                      "must be another file than result.output, which holds the start, too");
  }
  for (const Key& key : keys()) {
    if (config.sgd.init != SgdInit::law || key.section != "point") continue;
    if (!call.origins.flag(key.full_name())) continue;
    throw Error(fmt::format("{} is drawn with the start; give a start with sgd.init = \"point\"",
                            key.full_name()));
  }
  if (!call.origins.flag("sgd.tau") || !call.origins.given("sgd.steps")) return;
  if (config.sgd.steps == 0) return;
  if (call.origins.flag("sgd.steps")) {
    throw OptionError("sgd.tau", fmt::format("{:g}", config.sgd.tau),
                      "and sgd.steps are both given; give one of them");
  }
  config.sgd.steps = 0;  // a flag wins over the file
}

std::optional<Dataset> run_with_store(const Invocation& call, const std::string& label,
                                      ComputeRuns compute) {
  const std::unique_ptr<SgdStore> store = store_of(call);
  catch_interrupts();
  try {
    return compute(call.config, Watched(call, label), store.get());
  } catch (const Interrupted&) {
    fmt::print(stderr,
               "interrupted in the first step; nothing was written, the same command starts "
               "anew\n");
    return std::nullopt;
  }
}

int sgd_exit(const Invocation& call, const Dataset& result) {
  const std::string& output = call.config.result.output;
  const std::string outcome = result.text("outcome");
  if (outcome != to_string(SgdOutcome::interrupted)) {
    if (!output.empty()) discard_checkpoints(output);
    return outcome == to_string(SgdOutcome::diverged) ? kDiverged : kSuccess;
  }
  fmt::print(stderr, "interrupted after step {} of {}; {}\n", result.count("steps_taken"),
             call.config.sgd.total_steps(),
             output.empty() ? "without --output the same command starts anew"
                            : fmt::format("run the same command again to go on from there ({})",
                                          checkpoint_path(output)));
  return kInterrupted;
}

}  // namespace headflow::cli
