#pragma once

// Tasks that sweeps in a folder have kept, as KnownTasks: OUTPUT.tasks of every OUTPUT in it. Those
// of another program, or of another configuration, are not found.

#include <atomic>
#include <string>
#include <vector>

#include "study/known_tasks.h"
#include "sweep/task_store.h"

namespace headflow {

class KnownResults final : public KnownTasks {
 public:
  /// Throws FileError if there is no such folder, Error if another process computes tasks in it.
  explicit KnownResults(const std::string& folder);

  Loaded load(const TaskIdentity& task) const override;
  /// How many were found.
  int found() const { return found_; }

 private:
  std::vector<TaskStore> stores_;
  mutable std::atomic<int> found_ = 0;
};

}  // namespace headflow
