#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/sgd_runs.h"
#include "cli/watch.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/checkpoint_file.h"
#include "io/comparison_file.h"
#include "sgd/limit.h"

namespace headflow::cli {
namespace {

/// The theory's trajectory from where a run started, at the times of its records.
Theory follow(const Invocation& call, const Problem& problem, LimitKind kind, const SgdRuns& runs) {
  const std::string name(to_string(kind));
  const Config& config = call.config;
  Theory out{name, {}, {}, "", ErrorKind::refinement};
  for (std::size_t run = 0; run < runs.recorded.size(); ++run) {
    std::vector<std::int64_t> steps = runs.output_steps;
    steps.resize(runs.recorded[run].size());
    const std::string label = fmt::format("{} [{}/{}]", name, run + 1, runs.recorded.size());
    const Watched context(call, label);
    const Limit limit =
        make_limit(problem, config.run, config.sgd, runs.recorded[run].front().state, steps,
                   {kind, config.compare.rtol, config.compare.atol}, context);
    Trajectory trajectory;
    const FlowSummary summary =
        integrate_flow(*limit.engine, limit.start, limit.flow, trajectory, context);
    if (summary.outcome == FlowOutcome::diverged && !call.quiet) {
      fmt::print(stderr, "headflow: note: {}: {}\n", label, summary.message);
    }
    out.q.emplace_back();
    for (Point& point : trajectory.point) {
      out.q.back().push_back(point.q());
      point = limit.problem.frame().leave(point);
    }
    out.runs.push_back(std::move(trajectory));
    out.engine = limit.engine->name();
    out.error_kind = limit.engine->error_kind();
    if (interrupted()) break;
  }
  return out;
}

nlohmann::ordered_json deviation_json(const Deviation& deviation) {
  return {{"rms", deviation.rms}, {"largest", deviation.largest}};
}

int run_compare(Invocation& call) {
  Config& config = call.config;
  if (!config.result.output.empty()) check_writable(config.result.output);
  if (config.result.output.empty() && !call.json && call.quiet) {
    throw Error("compare: nothing to do with the result; give --output FILE.nc or --json");
  }
  return run_comparison(call, "compare");
}

}  // namespace

int run_comparison(Invocation& call, const std::string& label) {
  Config& config = call.config;
  settle_length(call);
  const auto begin = std::chrono::steady_clock::now();
  const Problem problem = sgd_problem(config);
  config.sgd.check(problem, thread_executor(config.program.threads)->workers());
  const std::vector<LimitKind> kinds = checked_limits(config.compare.theory);
  check_steps(config.compare.rtol, config.compare.atol);
  print_notes(problem, call.quiet);
  SgdRuns runs = run_sgd(call, problem, checked_starts(call, problem), label);
  const auto stopped = [&] {
    fmt::print(stderr, "{}\n", after_interrupt(config, runs));
    return kInterrupted;
  };
  if (runs.summary.outcome == "interrupted") return stopped();
  std::vector<Theory> theories;
  for (const LimitKind kind : kinds) {
    theories.push_back(follow(call, problem, kind, runs));
    if (interrupted()) return stopped();
  }
  runs.summary.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!config.result.output.empty()) {
    write_comparison(config.result.output, problem, config.sgd, runs.output_steps, runs.recorded,
                     runs.population, runs.summary, theories,
                     {config_text(config, {"problem", "run", "point", "sgd", "compare"}),
                      call.command_line, config.run.seed});
    discard_checkpoints(config.result.output);
  }
  auto all = nlohmann::ordered_json::array();
  for (const Theory& theory : theories) {
    const Deviations off = deviations(runs.recorded, runs.population, theory);
    all.push_back({{"theory", theory.name},
                   {"engine", theory.engine},
                   {"times", off.times},
                   {"m", deviation_json(off.m)},
                   {"q", deviation_json(off.q)},
                   {"loss", deviation_json(off.loss)}});
    if (!call.quiet) {
      const std::size_t all_times = runs.recorded.front().size();
      fmt::print(stderr,
                 "{}: SGD - {}: m rms {:.2g}, largest {:.2g}; q rms {:.2g}, largest {:.2g}; "
                 "loss{} rms {:.2g}{}\n",
                 label, theory.name, off.m.rms, off.m.largest, off.q.rms, off.q.largest,
                 runs.population.loss.empty() ? " of a batch" : "", off.loss.rms,
                 off.times == all_times ? ""
                                        : fmt::format(" (the theory ended after {} of {} times)",
                                                      off.times, all_times));
    }
  }
  const double kappa =
      config.sgd.lr * static_cast<double>(config.sgd.dim) / static_cast<double>(config.sgd.batch);
  if (!call.quiet) {
    fmt::print(stderr, "{}: D^-1/2 = {:.2g}, kappa = lr D / batch = {:.3g}{}\n", label,
               1 / std::sqrt(static_cast<double>(config.sgd.dim)), kappa,
               kappa > 0.1 && kinds == std::vector<LimitKind>{LimitKind::flow}
                   ? ": not small, so SGD does not follow gradient flow; --theory flow,kappa,map "
                     "has its limits, a larger batch is nearer to the flow"
                   : "");
  }
  if (call.json) {
    const nlohmann::ordered_json out = {{"outcome", runs.summary.outcome},
                                        {"steps", runs.summary.steps},
                                        {"runs", runs.recorded.size()},
                                        {"deviations", all},
                                        {"kappa", kappa},
                                        {"seed", config.run.seed},
                                        {"seconds", runs.summary.seconds},
                                        {"output", config.result.output}};
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet && !config.result.output.empty())
    fmt::print(stderr, "wrote {}\n", config.result.output);
  return runs.summary.outcome == "diverged" ? kDiverged : kSuccess;
}

const Command& compare_command() {
  static const Command command{
      "compare",
      "SGD at finite D laid over its limit",
      "Trains by SGD (as the command sgd) and integrates the flow from the very start of each "
      "run,\n"
      "m, R and p included; prints how far the two are apart and writes both into one file.\n"
      "With --theory flow,kappa,map also the limits at a finite learning rate, which keep the "
      "noise\n"
      "of the gradient: the flow with kappa = lr dim / batch, and its one-step map.\n\n"
      "example:\n"
      "  headflow compare --tokens 5 --heads 2 --features 2 --nu 2,2 --dim 10000 --batch 10000\n"
      "    --lr 0.02 --tau 50 --runs 3 --output compare.nc\n",
      {"problem", "sgd", "compare", "point", "run", "result", "program"},
      true,
      nullptr,
      run_compare};
  return command;
}

}  // namespace headflow::cli
