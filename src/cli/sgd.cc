#include "sgd/sgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/sgd_runs.h"
#include "cli/watch.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/atomic_file.h"
#include "io/checkpoint_file.h"
#include "io/file_lock.h"
#include "io/sgd_file.h"

namespace headflow::cli {
namespace {

nlohmann::ordered_json last_states(const std::vector<std::vector<SgdRecord>>& recorded) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& run : recorded) {
    const SgdRecord& last = run.back();
    nlohmann::ordered_json one = {{"m", to_json(last.state.m())},
                                  {"q", to_json(last.state.q())},
                                  {"p", to_json(last.state.p())}};
    for (const BlockLayout::Entry& e : last.state.blocks.entries()) {
      one[e.info.name] = to_json(last.state.blocks, e);
    }
    one["batch_loss"] = last.loss.mean;
    one["batch_loss_error"] = last.loss.error;
    out.push_back(std::move(one));
  }
  return out;
}

int run_sgd(Invocation& call) {
  Config& config = call.config;
  settle_length(call);
  const Problem problem = sgd_problem(config);
  config.sgd.check(problem, thread_executor(config.program.threads)->workers());
  if (config.result.output.empty() && !call.json) {
    throw Error("sgd: nothing to do with the result; give --output FILE.nc or --json");
  }
  for (const std::string& path : {config.result.output, config.result.save_init}) {
    if (!path.empty()) check_writable(path);
  }
  if (!config.result.output.empty() && config.result.output == config.result.save_init) {
    throw OptionError("result.save_init", in_quotes(config.result.save_init),
                      "must be another file than result.output, which holds the start, too");
  }
  print_notes(problem, call.quiet);
  for (const char* key : {"run.engine", "run.samples", "run.tolerance"}) {
    if (config.sgd.loss == SgdLoss::population || !call.origins.flag(key)) continue;
    print_note(fmt::format("{} is not used without sgd.loss = \"population\"", key), call.quiet);
  }

  const SgdRuns runs = run_sgd(call, problem, checked_starts(call, problem), "sgd");
  const bool interrupted = runs.summary.outcome == "interrupted";
  if (runs.recorded.front().empty()) {
    fmt::print(stderr, "{}\n", after_interrupt(config, runs));
    return kInterrupted;
  }
  const Provenance provenance{config_text(config, {"problem", "run", "point", "sgd"}),
                              call.command_line, config.run.seed};
  if (!config.result.output.empty()) {
    write_sgd_result(config.result.output, problem, config.sgd, runs.output_steps, runs.recorded,
                     runs.population, runs.summary, provenance);
    if (!interrupted) discard_checkpoints(config.result.output);
  }
  if (call.json) {
    nlohmann::ordered_json out = {{"outcome", runs.summary.outcome},
                                  {"method", to_string(config.sgd.method)},
                                  {"steps", runs.summary.steps},
                                  {"time", config.sgd.lr * static_cast<double>(runs.summary.steps)},
                                  {"runs", last_states(runs.recorded)}};
    if (!runs.population.loss.empty()) {
      for (std::size_t i = 0; i < runs.recorded.size(); ++i) {
        out["runs"][i]["loss"] = runs.population.loss[i].back();
        out["runs"][i]["loss_error"] = runs.population.error[i].back();
      }
    }
    out["seed"] = config.run.seed;
    out["seconds"] = runs.summary.seconds;
    out["output"] = config.result.output;
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet) {
    const SgdRecord& last = runs.recorded.front().back();
    fmt::print(stderr,
               "{} after {} steps (tau = {:g}), {:.2f} s; batch loss {:.6g} {}{}; "
               "kappa = lr D / batch = {:.3g}\n",
               runs.summary.outcome, runs.summary.steps,
               config.sgd.lr * static_cast<double>(runs.summary.steps), runs.summary.seconds,
               last.loss.mean,
               std::isfinite(last.loss.error) ? fmt::format("+- {:.2g}", last.loss.error)
                                              : "(error unknown)",
               runs.recorded.size() > 1 ? " (run 1)" : "",
               config.sgd.lr * static_cast<double>(config.sgd.dim) /
                   static_cast<double>(config.sgd.batch));
    if (!config.result.output.empty()) fmt::print(stderr, "wrote {}\n", config.result.output);
  }
  if (interrupted) fmt::print(stderr, "{}\n", after_interrupt(config, runs));
  if (runs.summary.outcome == "diverged") return kDiverged;
  return interrupted ? kInterrupted : kSuccess;
}

/// Losses of all recorded states, with the exact p of each run.
PopulationLoss population_losses(const Config& config, const Problem& without_p,
                                 const std::vector<std::vector<SgdRecord>>& recorded,
                                 const Context& context) {
  PopulationLoss out;
  const double count = static_cast<double>(recorded.size() * recorded.front().size());
  double done = 0;
  for (const auto& run : recorded) {
    const Problem problem = without_p.with_overlaps(run.front().state.p());
    std::unique_ptr<Engine> engine;
    out.loss.emplace_back();
    out.error.emplace_back();
    for (const SgdRecord& record : run) {
      const Point point = problem.frame().enter(point_of(record.state));
      if (!engine) engine = make_engine(problem, config.run, {&point, false}, context);
      engine->follow(point);
      Evaluation evaluation;
      engine->evaluate(point, {}, evaluation);
      out.loss.back().push_back(evaluation.loss);
      out.error.back().push_back(evaluation.loss_error);
      done += 1;
      context.status({.fraction = done / count, .count = done, .total = count, .unit = "states"});
      if (!context.goes_on()) return {};
    }
    out.engine = engine->name();
    out.error_kind = engine->error_kind();
  }
  return out;
}

/// The first record of each run, as a result of its own.
void write_start(const Config& config, const Problem& problem, const Sgd& sgd,
                 const Provenance& provenance) {
  std::vector<std::vector<SgdRecord>> first;
  for (const auto& run : sgd.recorded()) first.push_back({run.front()});
  write_sgd_result(config.result.save_init, problem, config.sgd, {sgd.output_steps().front()},
                   first, {}, {"start", 0, 0.0}, provenance);
}

/// The runs go on from where an earlier process was, if it has left a checkpoint that is whole.
void take_checkpoint(Sgd& sgd, const std::string& output, const std::string& configuration,
                     bool quiet) {
  const FoundCheckpoint found = read_checkpoint(output, configuration);
  if (!found.trouble.empty()) fmt::print(stderr, "headflow: warning: {}\n", found.trouble);
  if (!found.checkpoint) return;
  try {
    sgd.restore(*found.checkpoint);
  } catch (const Error& misfit) {
    throw FileError(found.path, fmt::format("{}; delete it to start anew, or choose another "
                                            "--output",
                                            misfit.what()));
  }
  if (!quiet) {
    fmt::print(stderr, "going on from step {} ({})\n", found.checkpoint->step, found.path);
  }
}

}  // namespace

Problem sgd_problem(const Config& config) {
  ProblemOptions options = config.problem;
  options.p.reset();  // the overlaps of the hidden directions are part of the state
  return Problem(options);
}

std::vector<SgdState> checked_starts(const Invocation& call, const Problem& problem) {
  for (const Key& key : keys()) {
    if (call.config.sgd.init != SgdInit::law || key.section != "point") continue;
    if (!call.origins.flag(key.full_name())) continue;
    throw Error(fmt::format("{} is drawn with the start; give a start with sgd.init = \"point\"",
                            key.full_name()));
  }
  return sgd_starts(call.config, problem);
}

SgdRuns run_sgd(const Invocation& call, const Problem& problem, const std::vector<SgdState>& starts,
                const std::string& label) {
  using Clock = std::chrono::steady_clock;
  const Config& config = call.config;
  const std::string configuration =
      config_text(config, {"problem", "run", "point", "sgd", "compare"});
  const std::string& output = config.result.output;  // checkpoints are beside it
  if (!(config.result.checkpoint_seconds >= 0)) {
    throw OptionError("result.checkpoint_seconds",
                      fmt::format("{}", config.result.checkpoint_seconds), "must not be negative");
  }
  std::optional<FileLock> lock;
  if (!output.empty()) {
    lock.emplace(link_target(checkpoint_path(output)) + ".lock", output, FileLock::AtEnd::remove);
  }
  std::optional<Watched> watch(std::in_place, call, label);
  const Context& context = *watch;
  Sgd sgd(problem, config.sgd, config.run.seed, starts, context);
  if (!output.empty()) take_checkpoint(sgd, output, configuration, call.quiet);
  catch_interrupts();
  const auto begin = Clock::now();
  auto last_saved = begin;
  SgdRuns out;
  {
    const double total = static_cast<double>(config.sgd.total_steps());
    const std::int64_t first = sgd.step();
    bool save_init = !config.result.save_init.empty();
    if (save_init && first > 0) {
      write_start(config, problem, sgd, {configuration, call.command_line, config.run.seed});
      save_init = false;
    }
    while (!sgd.finished() && !interrupted()) {
      if (!sgd.advance()) break;
      if (save_init) {
        write_start(config, problem, sgd, {configuration, call.command_line, config.run.seed});
        save_init = false;
      }
      const auto step = static_cast<double>(sgd.step());
      context.status({.fraction = step / total,
                      .time = config.sgd.lr * step,
                      .loss = sgd.recorded().front().back().loss.mean,
                      .count = step,
                      .before = static_cast<double>(first),
                      .unit = "steps"});
      const std::chrono::duration<double> since = Clock::now() - last_saved;
      if (!output.empty() && since.count() > config.result.checkpoint_seconds && !sgd.finished()) {
        write_checkpoint(output, sgd.checkpoint(), configuration);
        last_saved = Clock::now();
      }
    }
  }
  watch.reset();
  // Kept until the result is written: what follows the steps may take long, too.
  const bool recorded = !sgd.recorded().front().empty();
  if (!output.empty() && recorded && !sgd.diverged()) {
    write_checkpoint(output, sgd.checkpoint(), configuration);
  }
  out.output_steps = sgd.output_steps();
  out.recorded = sgd.recorded();
  out.step = sgd.step();
  if (!recorded) {
    out.summary.outcome = "interrupted";
    return out;
  }
  out.summary.steps = sgd.output_steps()[out.recorded.front().size() - 1];
  if (config.sgd.loss == SgdLoss::population) {
    try {
      out.population =
          population_losses(config, problem, out.recorded, Watched(call, "population loss"));
    } catch (const Interrupted&) {
      out.population = {};  // the runs are kept without it
    }
  }
  out.summary.outcome = sgd.diverged()                     ? "diverged"
                        : sgd.finished() && !interrupted() ? "finished"
                                                           : "interrupted";
  out.summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

std::string after_interrupt(const Config& config, const SgdRuns& runs) {
  if (runs.recorded.front().empty()) {
    return "interrupted in the first step; nothing was written, the same command starts anew";
  }
  if (config.result.output.empty()) {
    return fmt::format(
        "interrupted after step {} of {}; without --output the same command starts anew", runs.step,
        config.sgd.total_steps());
  }
  return fmt::format(
      "interrupted after step {} of {}; run the same command again to go on from there ({})",
      runs.step, config.sgd.total_steps(), checkpoint_path(config.result.output));
}

void settle_length(Invocation& call) {
  Config& config = call.config;
  if (!call.origins.flag("sgd.tau") || !call.origins.given("sgd.steps")) return;
  if (config.sgd.steps == 0) return;
  if (call.origins.flag("sgd.steps")) {
    throw OptionError("sgd.tau", fmt::format("{:g}", config.sgd.tau),
                      "and sgd.steps are both given; give one of them");
  }
  config.sgd.steps = 0;  // a flag wins over the file
}

const Command& sgd_command() {
  static const Command command{
      "sgd",
      "train by SGD at finite dimension D, exactly",
      "Online SGD of the heads at dimension D: fresh batches, learning rate lr. The method "
      "reduced\n"
      "steps the overlaps m, q, b, v as the Markov chain that they are, exact in law at any D and\n"
      "at a cost that does not depend on D; direct draws every sample in D dimensions.\n"
      "Writes the runs as netCDF (docs/result_format.md). A run that was interrupted or killed "
      "goes\n"
      "on where it was when the same command is given again.\n\n"
      "example:\n"
      "  headflow sgd --activation softmax --prior flipping --tokens 10 --heads 2 --features 2\n"
      "    --nu 2,2 --dim 10000 --batch 10000 --lr 0.02 --steps 5000 --seed 3 --output run.nc\n",
      {"problem", "sgd", "point", "run", "result", "program"},
      true,
      nullptr,
      run_sgd};
  return command;
}

}  // namespace headflow::cli
