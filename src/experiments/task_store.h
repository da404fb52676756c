#pragma once

// Finished tasks of a sweep, kept one a file in a folder until the result is written.

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/measures.h"

namespace headflow {

struct TaskResult {
  std::vector<Quantity> quantities;
  double seconds = 0;  ///< that the task took
};

class TaskStore {
 public:
  /// The folder belongs to one configuration of one version of the program; throws Error if it
  /// belongs to another.
  TaskStore(const std::string& folder, const std::string& configuration);

  bool load(std::size_t task, TaskResult& out) const;
  void save(std::size_t task, const TaskResult& result) const;
  void remove() const;  ///< the whole folder

 private:
  std::filesystem::path path_of(std::size_t task) const;
  std::filesystem::path folder_;
};

}  // namespace headflow
