#include "io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace headflow {

FileLock::FileLock(const std::string& path, const std::string& what, AtEnd at_end)
    : path_(path), at_end_(at_end) {
  for (;;) {
    file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (file_ < 0) throw FileError(path, fmt::format("cannot be made: {}", std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(file_);
      throw Error(fmt::format(
          "{}: another process is at work on it; wait for it, or choose another result.output",
          what));
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
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)),
      at_end_(other.at_end_),
      file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ < 0) return;
  if (at_end_ == AtEnd::remove) ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace headflow
