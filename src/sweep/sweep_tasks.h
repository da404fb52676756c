#pragma once

// One sweep: its tasks one by one, and the file they go to.

#include <optional>

#include "sweep/sweep.h"
#include "sweep/task_store.h"

namespace headflow {

class RunningSweep {
 public:
  /// Checks all tasks, and what is at OUTPUT; throws as run_sweeps does.
  RunningSweep(SweepJob job, const Context& context);

  const SweepJob& job() const { return job_; }
  std::size_t tasks() const { return job_.file.plan.tasks(); }
  std::string describe(std::size_t task) const { return job_.file.plan.describe(task); }

  /// The configuration of a task, which is all that it depends on.
  Config config_of(std::size_t task) const;
  /// What a task of this configuration computes.
  TaskIdentity identity(const Config& config) const;
  /// What it is computed from, whatever is measured.
  static Fingerprint computed_from(const Config& config);

  TaskStore& store() { return *store_; }
  const Fingerprint& fingerprint(std::size_t task) const { return fingerprints_[task]; }

  /// The task, of that configuration, for each of these lists of measures; nothing if stopped.
  std::optional<std::vector<TaskResult>> compute(std::size_t task, const Config& config,
                                                 const std::vector<Measures>& lists,
                                                 const Context& context) const;

  void settle(const TaskResult& result);  ///< one more task is done
  void keep(const TaskResult& result);    ///< ... by an earlier run
  bool complete() const { return outcome.done == outcome.tasks; }
  /// Writes the result, once.
  void finish();

  SweepOutcome outcome;

 private:
  std::string tasks_folder() const;
  void take_start(const Context& context);
  void check_tasks(const Context& context);
  void look_at_output(const Context& context);

  SweepJob job_;
  std::vector<Fingerprint> fingerprints_;
  std::optional<TaskStore> store_;
};

/// The program as tasks know it.
std::string program_identity();
/// A task of any sweep; its start is resolved, as in RunningSweep::config_of.
TaskIdentity task_identity(Config config, const Measures& measures);

}  // namespace headflow
