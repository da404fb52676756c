#pragma once

// One process at a time works on an output.

#include <string>

namespace headflow {

/// Holds a lock file, made if there is none, for this process. Throws Error, which names `what` is
/// held, if another process holds it. The lock goes with the process: one that was killed holds
/// nothing.
class FileLock {
 public:
  enum class AtEnd { keep, remove };  ///< of the file
  FileLock(const std::string& path, const std::string& what, AtEnd at_end);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  FileLock& operator=(FileLock&&) = delete;

 private:
  std::string path_;
  AtEnd at_end_;
  int file_ = -1;
};

}  // namespace headflow
