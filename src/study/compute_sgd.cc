#include <cmath>

#include "core/error.h"
#include "core/suggest.h"
#include "sgd/comparison.h"
#include "study/compute.h"
#include "study/keys.h"
#include "study/overlaps.h"
#include "study/settings.h"

namespace headflow {
namespace {

/// The problem with its prior as it is written: the overlaps of the hidden directions are part of
/// the state.
Problem problem_of_runs(const Config& config, const Context& context) {
  ProblemOptions options = config.problem;
  options.p.reset();
  Problem out = noted_problem(options, context);
  config.sgd.check(out, context.executor->workers());
  return out;
}

std::vector<double> joined(const std::vector<std::vector<double>>& rows) {
  std::vector<double> out;
  for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

void add_runs(Dataset& out, const Problem& problem, const SgdOptions& options,
              const SgdRuns& runs) {
  const std::size_t outputs = runs.recorded.front().size();
  const Dimension run{"run", runs.recorded.size()}, time{"time", outputs};
  const auto record = [&](std::size_t i) -> const SgdRecord& {
    return runs.recorded[i / outputs][i % outputs];
  };
  std::vector<double> times, loss, error;
  for (const std::int64_t step : runs.output_steps) {
    times.push_back(options.lr * static_cast<double>(step));
  }
  for (std::size_t i = 0; i < run.size * outputs; ++i) {
    loss.push_back(record(i).loss.mean);
    error.push_back(record(i).loss.error);
  }
  std::vector<Matrix> p;
  for (const auto& of_run : runs.recorded) p.push_back(of_run.front().state.p());
  add_time(out, times);
  out.add_integers("step", "steps of SGD", {time}, runs.output_steps);
  add_p(out, run, p);
  add_overlaps(out, problem, {run, time}, {{Part::m, Part::q, Part::R, Part::blocks}},
               [&](std::size_t i) { return overlaps_of(record(i).state); });
  out.add("batch_loss", "loss of the batch that is drawn at this time", {run, time}, loss)
      .with_errors(error, ErrorKind::replicas);
  if (!runs.population.loss.empty()) {
    out.add("loss", "population loss in the limit of large D", {run, time},
            joined(runs.population.loss))
        .with_errors(joined(runs.population.error), runs.population.error_kind);
    out.set("engine", runs.population.engine);
  }
  out.set("method", std::string(to_string(options.method)));
  out.set("dim", options.dim);
  out.set("batch", options.batch);
  out.set("lr", options.lr);
  out.set("kappa", noise_of(options));
  out.set("outcome", std::string(to_string(runs.outcome)));
  out.set("steps", runs.steps());
  out.set("steps_taken", runs.taken);
  out.set("seconds", runs.seconds);
}

/// Limits beside the runs: m_theory, q_theory, ... along the dimension `theory`.
void add_theories(Dataset& out, const Problem& problem, const SgdRuns& runs,
                  const std::vector<Theory>& theories) {
  const std::size_t outputs = runs.recorded.front().size(), count = runs.recorded.size();
  const Dimension theory{"theory", theories.size()}, run{"run", count}, time{"time", outputs};
  struct At {
    const Theory& theory;
    std::size_t run, output;
    const Trajectory& trajectory() const { return theory.runs[run]; }
    /// A trajectory that ended early (a flow that diverged) is unknown beyond.
    bool known() const { return output < trajectory().time.size(); }
  };
  const auto at = [&](std::size_t i) -> At {
    return {theories[i / (count * outputs)], i / outputs % count, i % outputs};
  };
  const std::size_t entries = theories.size() * count * outputs;
  std::vector<double> loss, error;
  for (std::size_t i = 0; i < entries; ++i) {
    const At here = at(i);
    loss.push_back(here.known() ? here.trajectory().loss[here.output] : std::nan(""));
    error.push_back(here.known() ? here.trajectory().loss_error[here.output] : std::nan(""));
  }
  std::vector<std::string> names, engines, kinds;
  std::vector<double> times;
  struct Column {
    const char* of;
    Deviation Deviations::*deviation;
    std::vector<double> rms = {}, largest = {};
  };
  Column columns[] = {{"m", &Deviations::m}, {"q", &Deviations::q}, {"loss", &Deviations::loss}};
  for (const Theory& one : theories) {
    const Deviations off = deviations(runs, one);
    names.emplace_back(to_string(one.kind));
    engines.push_back(one.engine);
    kinds.emplace_back(to_string(one.error_kind));
    times.push_back(static_cast<double>(off.times));
    for (Column& column : columns) {
      column.rms.push_back((off.*column.deviation).rms);
      column.largest.push_back((off.*column.deviation).largest);
    }
  }
  out.add_texts("theory", "limit that SGD is compared with", {theory}, names);
  add_overlaps(
      out, problem, {theory, run, time},
      {{Part::m, Part::q, Part::blocks}, "", "_theory", ", by the theory"},
      [&](std::size_t i) -> std::optional<Overlaps> {
        const At here = at(i);
        if (!here.known()) return std::nullopt;
        const Point& point = here.trajectory().point[here.output];
        return Overlaps{point.m, point.R, here.theory.q[here.run][here.output], point.blocks};
      });
  Quantity& losses =
      out.add("loss_theory", "population loss, by the theory", {theory, run, time}, loss);
  losses.errors = error;  // their kind is that of the theory: theory_error_kind
  for (const Column& column : columns) {
    const std::string of = column.of;
    out.add("rms_" + of, "root mean square of SGD - theory over runs, times and entries: " + of,
            {theory}, column.rms);
    out.add("largest_" + of, "largest |SGD - theory|: " + of, {theory}, column.largest);
  }
  out.add("times_compared", "output times at which SGD and the theory were compared", {theory},
          times)
      .whole_numbers();
  out.add_texts("theory_engine", "how the loss of the theory was computed", {theory}, engines);
  out.add_texts("theory_error_kind", "kind of the error of the loss of the theory", {theory},
                kinds);
}

SgdRuns runs_of(const Config& config, const Problem& problem, const Context& context,
                SgdStore* store) {
  SgdRuns out =
      run_sgd(problem, config.sgd, config.run, sgd_starts(config, problem), context, store);
  if (out.recorded.front().empty()) throw Interrupted();
  return out;
}

}  // namespace

Dataset sgd_dataset(const Problem& problem, const SgdOptions& options, const SgdRuns& runs) {
  Dataset out{"headflow-sgd", "headflow: runs of SGD", {}, {}, {}};
  out.tables = {{"run", "runs"}};
  add_runs(out, problem, options, runs);
  return out;
}

Dataset compute_sgd(const Config& config, const Context& context, SgdStore* store) {
  const Problem problem = problem_of_runs(config, context);
  const SgdRuns runs = runs_of(config, problem, context, store);
  Dataset out = sgd_dataset(problem, config.sgd, runs);
  out.provenance = {config_text(config, {"problem", "run", "point", "sgd"}), "", config.run.seed};
  return out;
}

Dataset start_of_runs(const Config& config, const Sgd& runs) {
  SgdRuns first;
  first.outcome = SgdOutcome::started;
  for (const auto& run : runs.recorded()) first.recorded.push_back({run.front()});
  first.output_steps = {runs.output_steps().front()};
  ProblemOptions options = config.problem;
  options.p.reset();
  Dataset out = sgd_dataset(Problem(options), config.sgd, first);
  out.provenance = {config_text(config, {"problem", "run", "point", "sgd"}), "", config.run.seed};
  return out;
}

Dataset compute_comparison(const Config& config, const Context& context, SgdStore* store) {
  const Stopwatch watch;
  const Problem problem = problem_of_runs(config, context);
  const std::vector<LimitKind> kinds = checked_limits(config.compare.theory);
  check_steps(config.compare.rtol, config.compare.atol);
  SgdRuns runs = runs_of(config, problem, context, store);
  std::vector<Theory> theories;
  try {
    for (const LimitKind kind : kinds) {
      if (runs.outcome == SgdOutcome::interrupted) break;
      theories.push_back(follow_limit(problem, config.run, config.sgd, runs,
                                      {kind, config.compare.rtol, config.compare.atol}, context));
    }
  } catch (const Interrupted&) {
    runs.outcome = SgdOutcome::interrupted;
  }
  Dataset out{"headflow-comparison", "headflow: SGD and its limits", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "run", "point", "sgd", "compare"}), "",
                    config.run.seed};
  out.tables = {{"run", "runs"}, {"theory", "theories"}};
  runs.seconds = watch.seconds();
  add_runs(out, problem, config.sgd, runs);
  if (runs.outcome != SgdOutcome::interrupted) add_theories(out, problem, runs, theories);
  return out;
}

}  // namespace headflow
