#pragma once

// Runs of SGD from their start, or from where an earlier process was, to their end.

#include <functional>

#include "sgd/population_loss.h"

namespace headflow {

enum class SgdOutcome { started, finished, diverged, interrupted };
template <>
inline constexpr Named<SgdOutcome> kNames<SgdOutcome>[] = {
    {SgdOutcome::started, "start"},
    {SgdOutcome::finished, "finished"},
    {SgdOutcome::diverged, "diverged"},
    {SgdOutcome::interrupted, "interrupted"}};

/// Where runs that are stopped leave what they have, and find it again.
class SgdStore {
 public:
  virtual ~SgdStore() = default;
  struct Found {
    SgdCheckpoint checkpoint;
    std::string where;  ///< for messages
  };
  /// What an earlier process has left, if anything.
  virtual std::optional<Found> load(const Context& /*context*/) { return std::nullopt; }
  /// Called once, when the start is recorded.
  virtual void started(const Sgd& /*runs*/) {}
  /// Called every `seconds`, and at the end, also when all steps are taken.
  virtual void save(const SgdCheckpoint& /*checkpoint*/) {}
  virtual double seconds() const { return 60; }
};

struct SgdRuns {
  std::vector<std::int64_t> output_steps;        ///< of what is recorded
  std::vector<std::vector<SgdRecord>> recorded;  ///< [run][output]
  PopulationLoss population;
  SgdOutcome outcome = SgdOutcome::finished;
  std::int64_t taken = 0;  ///< steps that the state of the runs, and a checkpoint, is after
  double seconds = 0;      ///< of this process

  std::int64_t steps() const { return output_steps.empty() ? 0 : output_steps.back(); }
};

/// One start for each run. The loss of the population is computed if sgd.loss says so, by `engine`,
/// whose seed is that of the runs. What is stopped is kept as far as it was recorded; nothing may
/// be.
SgdRuns run_sgd(const Problem& problem, const SgdOptions& options, const EngineOptions& engine,
                const std::vector<SgdState>& starts, const Context& context = {},
                SgdStore* store = nullptr);

}  // namespace headflow
