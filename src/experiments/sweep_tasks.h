#pragma once

// One sweep: its tasks one by one, and the file they go to.

#include <optional>

#include "experiments/sweep.h"
#include "experiments/task_store.h"

namespace headflow {

class RunningSweep {
 public:
  /// Checks all tasks, and what is at OUTPUT; throws as run_sweeps does.
  RunningSweep(SweepJob job, const Context& context);

  const SweepJob& job() const { return job_; }
  std::size_t tasks() const { return job_.file.plan.tasks(); }
  std::string describe(std::size_t task) const { return job_.file.plan.describe(task); }

  /// Sets a session to a task.
  void prepare(std::size_t task, Session& session) const;
  /// What the prepared task computes.
  TaskIdentity identity(const Session& session) const;

  TaskStore& store() { return *store_; }
  const Fingerprint& fingerprint(std::size_t task) const { return fingerprints_[task]; }

  /// The task, whose session is prepared; nothing if stopped.
  std::optional<TaskResult> compute(std::size_t task, Session& session,
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
  std::string configuration_;
  std::vector<Fingerprint> fingerprints_;
  std::optional<TaskStore> store_;
};

/// The program as tasks know it.
std::string program_identity();

}  // namespace headflow
