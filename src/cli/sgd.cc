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
  Session& session = call.session;
  settle_length(session);
  const Problem problem = sgd_problem(session);
  session.sgd.check(problem, thread_executor(session.threads)->workers());
  if (session.output.empty() && !call.json) {
    throw Error("sgd: nothing to do with the result; give --output FILE.nc or --json");
  }
  for (const std::string& path : {session.output, session.save_init}) {
    if (!path.empty()) check_writable(path);
  }
  if (!session.output.empty() && session.output == session.save_init) {
    throw OptionError("result.save_init", in_quotes(session.save_init),
                      "must be another file than result.output, which holds the start, too");
  }
  print_notes(problem, call.quiet);
  for (const char* key : {"run.engine", "run.samples", "run.tolerance"}) {
    if (session.sgd.loss == SgdLoss::population || !session.keys.origin(key).starts_with("--"))
      continue;
    print_note(fmt::format("{} is not used without sgd.loss = \"population\"", key), call.quiet);
  }

  const SgdRuns runs = run_sgd(call, problem, sgd_starts(session, problem), "sgd");
  const bool interrupted = runs.summary.outcome == "interrupted";
  if (runs.recorded.front().empty()) {
    fmt::print(stderr, "{}\n", after_interrupt(session, runs));
    return kInterrupted;
  }
  const Provenance provenance{session.sgd_configuration(), call.command_line, session.engine.seed};
  if (!session.output.empty()) {
    write_sgd_result(session.output, problem, session.sgd, runs.output_steps, runs.recorded,
                     runs.population, runs.summary, provenance);
    if (!interrupted) discard_checkpoints(session.output);
  }
  if (call.json) {
    nlohmann::ordered_json out = {
        {"outcome", runs.summary.outcome},
        {"method", to_string(session.sgd.method)},
        {"steps", runs.summary.steps},
        {"time", session.sgd.lr * static_cast<double>(runs.summary.steps)},
        {"runs", last_states(runs.recorded)}};
    if (!runs.population.loss.empty()) {
      for (std::size_t i = 0; i < runs.recorded.size(); ++i) {
        out["runs"][i]["loss"] = runs.population.loss[i].back();
        out["runs"][i]["loss_error"] = runs.population.error[i].back();
      }
    }
    out["seed"] = session.engine.seed;
    out["seconds"] = runs.summary.seconds;
    out["output"] = session.output;
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet) {
    const SgdRecord& last = runs.recorded.front().back();
    fmt::print(stderr,
               "{} after {} steps (tau = {:g}), {:.2f} s; batch loss {:.6g} {}{}; "
               "kappa = lr D / batch = {:.3g}\n",
               runs.summary.outcome, runs.summary.steps,
               session.sgd.lr * static_cast<double>(runs.summary.steps), runs.summary.seconds,
               last.loss.mean,
               std::isfinite(last.loss.error) ? fmt::format("+- {:.2g}", last.loss.error)
                                              : "(error unknown)",
               runs.recorded.size() > 1 ? " (run 1)" : "",
               session.sgd.lr * static_cast<double>(session.sgd.dim) /
                   static_cast<double>(session.sgd.batch));
    if (!session.output.empty()) fmt::print(stderr, "wrote {}\n", session.output);
  }
  if (interrupted) fmt::print(stderr, "{}\n", after_interrupt(session, runs));
  if (runs.summary.outcome == "diverged") return kDiverged;
  return interrupted ? kInterrupted : kSuccess;
}

/// Losses of all recorded states, with the exact p of each run.
PopulationLoss population_losses(const Session& session, const Problem& without_p,
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
      if (!engine) engine = make_engine(problem, session.engine, {&point, false}, context);
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
void write_start(const Session& session, const Problem& problem, const Sgd& sgd,
                 const Provenance& provenance) {
  std::vector<std::vector<SgdRecord>> first;
  for (const auto& run : sgd.recorded()) first.push_back({run.front()});
  write_sgd_result(session.save_init, problem, session.sgd, {sgd.output_steps().front()}, first, {},
                   {"start", 0, 0.0}, provenance);
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

Problem sgd_problem(const Session& session) {
  ProblemOptions options = session.problem;
  options.p.reset();  // the overlaps of the hidden directions are part of the state
  return Problem(options);
}

std::vector<SgdState> sgd_starts(const Session& session, const Problem& problem) {
  if (session.sgd.init == SgdInit::law) {
    for (const Key& key : session.keys.all()) {
      if (key.section != "point") continue;
      if (!session.keys.origin(key.full_name()).starts_with("--")) continue;
      throw Error(fmt::format("{} is drawn with the start; give a start with --init point",
                              key.full_name()));
    }
    if (session.problem.p) {
      throw OptionError("problem.p", parameter_text(*session.problem.p),
                        "is drawn with the start; give a start with --init point");
    }
    return Sgd::starts(problem, session.sgd, session.engine.seed);
  }
  const Problem given(session.problem);
  const Point point = session.point.make(given);
  const SgdState start = state_with(given.p(), given.frame().leave(point));
  return {static_cast<std::size_t>(session.sgd.runs), start};
}

SgdRuns run_sgd(const Invocation& call, const Problem& problem, const std::vector<SgdState>& starts,
                const std::string& label) {
  using Clock = std::chrono::steady_clock;
  const Session& session = call.session;
  const std::string configuration = session.compare_configuration();
  const std::string& output = session.output;  // checkpoints are beside it
  if (!(session.checkpoint_seconds >= 0)) {
    throw OptionError("result.checkpoint_seconds", fmt::format("{}", session.checkpoint_seconds),
                      "must not be negative");
  }
  std::optional<FileLock> lock;
  if (!output.empty()) {
    lock.emplace(link_target(checkpoint_path(output)) + ".lock", output, FileLock::AtEnd::remove);
  }
  std::optional<Watched> watch(std::in_place, call, label);
  const Context& context = *watch;
  Sgd sgd(problem, session.sgd, session.engine.seed, starts, context);
  if (!output.empty()) take_checkpoint(sgd, output, configuration, call.quiet);
  catch_interrupts();
  const auto begin = Clock::now();
  auto last_saved = begin;
  SgdRuns out;
  {
    const double total = static_cast<double>(session.sgd.total_steps());
    const std::int64_t first = sgd.step();
    bool save_init = !session.save_init.empty();
    if (save_init && first > 0) {
      write_start(session, problem, sgd, {configuration, call.command_line, session.engine.seed});
      save_init = false;
    }
    while (!sgd.finished() && !interrupted()) {
      if (!sgd.advance()) break;
      if (save_init) {
        write_start(session, problem, sgd, {configuration, call.command_line, session.engine.seed});
        save_init = false;
      }
      const auto step = static_cast<double>(sgd.step());
      context.status({.fraction = step / total,
                      .time = session.sgd.lr * step,
                      .loss = sgd.recorded().front().back().loss.mean,
                      .count = step,
                      .before = static_cast<double>(first),
                      .unit = "steps"});
      const std::chrono::duration<double> since = Clock::now() - last_saved;
      if (!output.empty() && since.count() > session.checkpoint_seconds && !sgd.finished()) {
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
  if (session.sgd.loss == SgdLoss::population) {
    try {
      out.population =
          population_losses(session, problem, out.recorded, Watched(call, "population loss"));
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

std::string after_interrupt(const Session& session, const SgdRuns& runs) {
  if (runs.recorded.front().empty()) {
    return "interrupted in the first step; nothing was written, the same command starts anew";
  }
  if (session.output.empty()) {
    return fmt::format(
        "interrupted after step {} of {}; without --output the same command starts anew", runs.step,
        session.sgd.total_steps());
  }
  return fmt::format(
      "interrupted after step {} of {}; run the same command again to go on from there ({})",
      runs.step, session.sgd.total_steps(), checkpoint_path(session.output));
}

void settle_length(Session& session) {
  const std::string tau = session.keys.origin("sgd.tau"), steps = session.keys.origin("sgd.steps");
  if (!tau.starts_with("--") || steps.empty() || session.sgd.steps == 0) return;
  if (steps.starts_with("--")) {
    throw OptionError("sgd.tau", fmt::format("{:g}", session.sgd.tau),
                      "and sgd.steps are both given; give one of them");
  }
  session.sgd.steps = 0;  // a flag wins over the file
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
