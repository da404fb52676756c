#include "sgd/runs.h"

#include <chrono>

namespace headflow {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void take_up(Sgd& sgd, SgdStore& store, const Context& context) {
  const std::optional<SgdStore::Found> found = store.load(context);
  if (!found) return;
  try {
    sgd.restore(found->checkpoint);
  } catch (const Error& misfit) {
    throw FileError(found->where, fmt::format("{}; delete it to start anew, or choose another "
                                              "result.output",
                                              misfit.what()));
  }
  context.note(fmt::format("going on from step {} ({})", found->checkpoint.step, found->where));
}

/// To the end, or until it is asked to stop.
void advance(Sgd& sgd, const SgdOptions& options, const Context& context, SgdStore& store) {
  const auto total = static_cast<double>(options.total_steps());
  const std::int64_t first = sgd.step();
  bool started = false;
  const auto tell_start = [&] {
    if (!started && !sgd.recorded().front().empty()) {
      store.started(sgd);
      started = true;
    }
  };
  tell_start();
  auto last_saved = Clock::now();
  while (!sgd.finished() && context.goes_on()) {
    if (!sgd.advance()) break;
    tell_start();
    const auto step = static_cast<double>(sgd.step());
    context.status({.fraction = step / total,
                    .time = options.lr * step,
                    .loss = sgd.recorded().front().back().loss.mean,
                    .count = step,
                    .before = static_cast<double>(first),
                    .unit = "steps"});
    if (seconds_since(last_saved) > store.seconds() && !sgd.finished()) {
      store.save(sgd.checkpoint());
      last_saved = Clock::now();
    }
  }
}

}  // namespace

SgdRuns run_sgd(const Problem& problem, const SgdOptions& options, const EngineOptions& engine,
                const std::vector<SgdState>& starts, const Context& context, SgdStore* store) {
  SgdStore none;
  SgdStore& kept = store ? *store : none;
  Sgd sgd(problem, options, engine.seed, starts, context);
  take_up(sgd, kept, context);
  const auto begin = Clock::now();
  advance(sgd, options, context, kept);
  // Kept until the result is written: what follows the steps may take long, too.
  const bool recorded = !sgd.recorded().front().empty();
  if (recorded && !sgd.diverged()) kept.save(sgd.checkpoint());
  SgdRuns out;
  out.output_steps = sgd.output_steps();
  out.recorded = sgd.recorded();
  out.output_steps.resize(out.recorded.front().size());
  out.taken = sgd.step();
  if (recorded && options.loss == SgdLoss::population) {
    out.population = population_loss(problem, engine, out.recorded, context);
  }
  out.outcome = sgd.diverged()                        ? SgdOutcome::diverged
                : sgd.finished() && context.goes_on() ? SgdOutcome::finished
                                                      : SgdOutcome::interrupted;
  out.seconds = seconds_since(begin);
  return out;
}

}  // namespace headflow
