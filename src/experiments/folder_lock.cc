#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "experiments/task_store.h"

namespace headflow {

// The lock goes with the process: one that was killed holds nothing.
FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::string path = (folder / kLockName).string();
  for (;;) {
    file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (file_ < 0) throw FileError(path, fmt::format("cannot be made: {}", std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(file_);
      throw Error(fmt::format(
          "{}: another process is at work on this sweep; wait for it, or choose another --output",
          folder.string()));
    }
    // If a process that has just ended removed the file, this lock is on nothing: once more.
    struct stat mine {
    }, there{};
    if (::fstat(file_, &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) {
      return;
    }
    ::close(file_);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
  }
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace headflow
