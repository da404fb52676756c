#pragma once

// One sweep on disk: its tasks in a folder, and the file that their result goes to.

#include <optional>

#include "sweep/sweep.h"
#include "sweep/task_store.h"

namespace headflow {

class StoredSweep final : public RunningSweep {
 public:
  /// Checks all tasks, and what is at OUTPUT; throws as run_sweeps does.
  StoredSweep(SweepJob job, const Context& context);

  TaskStore* keeper() override { return store_ ? &*store_ : nullptr; }
  /// Writes the result, once.
  void finish() override;

 private:
  std::string tasks_folder() const;
  void look_at_output(const Context& context);
  TaskResult stored(std::size_t task) const;

  SweepJob job_;
  std::optional<TaskStore> store_;
};

}  // namespace headflow
