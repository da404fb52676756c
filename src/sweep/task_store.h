#pragma once

// Finished tasks of a sweep, one a file in a folder. A task is kept by what it computes: the name
// of its file is the fingerprint of its configuration and of the program, the file repeats both
// and carries a checksum. Whatever else is in the folder cannot be taken for it; a sweep may grow,
// or name its axes otherwise, and finds the tasks it has in common with what was there.

#include <filesystem>
#include <string>
#include <vector>

#include "core/fingerprint.h"
#include "io/file_lock.h"
#include "study/known_tasks.h"

namespace headflow {

inline constexpr const char* kLockName = "lock";
/// A sweep with the result OUTPUT keeps its tasks in OUTPUT.tasks.
inline constexpr const char* kTasksExtension = ".tasks";

class TaskStore final : public TaskKeeper {
 public:
  /// Makes the folder if there is none, and locks it. Throws FileError, and Error if another
  /// process works in it.
  explicit TaskStore(const std::string& folder);

  Loaded load(const TaskIdentity& task) const override;
  void save(const TaskIdentity& task, const TaskResult& result) override;
  /// True if there is a file of that task, in whatever condition.
  bool has(const Fingerprint& task) const;

  /// Removes tasks that can be of no use: those of other programs and, the oldest first, those
  /// beyond `most` that are not among `wanted` (sorted).
  void tidy(const std::string& program, const std::vector<Fingerprint>& wanted,
            std::size_t most) const;
  void remove() const;  ///< the whole folder

  std::filesystem::path path_of(const Fingerprint& task) const;

 private:
  std::filesystem::path folder_;
  FileLock lock_;
};

}  // namespace headflow
