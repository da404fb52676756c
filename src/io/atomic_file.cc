#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/error.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".headflow-tmp-";
constexpr std::string_view kLetters = "XXXXXX";  // mkstemp's
constexpr std::size_t kLongestStem = 200;        // of 255 bytes that a name may have
constexpr int kMostLinks = 40;

[[noreturn]] void cannot_write(const std::string& path, int code) {
  throw FileError(path, fmt::format("cannot be written: {}", std::strerror(code)));
}

fs::path folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// Where a chain of symbolic links leads, whether there is a file or not.
fs::path followed(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    const fs::path target = fs::read_symlink(at, error);
    if (error || links == kMostLinks)
      throw FileError(path, "is a symbolic link that leads nowhere");
    at = target.is_absolute() ? target : folder_of(at) / target;
  }
  return at;
}

/// The path of temporary files, but for its last letters; of long names only the beginning.
std::string temporary_stem(const fs::path& target) {
  const std::string name = target.filename().string();
  std::string stem = name.substr(0, kLongestStem);
  if (name.size() > kLongestStem) stem += fmt::format("~{:x}", std::hash<std::string>()(name));
  return (folder_of(target) / (stem + std::string(kMark))).string();
}

/// A new file beside the target, locked for as long as it is open. -1 if there can be none.
int open_temporary(const fs::path& target, std::string& temporary) {
  for (;;) {
    temporary = temporary_stem(target) + std::string(kLetters);
    const int file = ::mkstemp(temporary.data());
    if (file < 0) return -1;
    ::flock(file, LOCK_EX | LOCK_NB);  // where there are no locks, leftovers are left, too
    struct stat status {};
    if (::fstat(file, &status) == 0 && status.st_nlink > 0) return file;
    ::close(file);  // taken for a leftover before it was locked
  }
}

/// What the path leads to, if a file can be there.
fs::path checked_target(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty()) throw FileError("\"\"", "is no name of a file");
  if (fs::is_directory(status) || path.ends_with('/')) {
    throw FileError(path, "is a folder; give the name of a file");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw FileError(path,
                    fmt::format("is {}, not a regular file", fs::is_fifo(status)     ? "a pipe"
                                                             : fs::is_socket(status) ? "a socket"
                                                                                     : "a device"));
  }
  fs::path target = followed(path);
  const fs::path folder = folder_of(target);
  if (!fs::is_directory(folder, error)) {
    throw FileError(path, error && error.value() != ENOENT
                              ? fmt::format("cannot be written: {}", error.message())
                              : fmt::format("the folder {} does not exist", folder.string()));
  }
  if (target.filename().string().size() > NAME_MAX) cannot_write(path, ENAMETOOLONG);
  if (::access(folder.c_str(), W_OK) != 0) {
    throw FileError(path,
                    fmt::format("cannot write in {}: {}", folder.string(), std::strerror(errno)));
  }
  return target;
}

void remove_leftovers_of(const fs::path& target) {
  const std::string stem = fs::path(temporary_stem(target)).filename().string();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(target), error)) {
    const std::string other = entry.path().filename().string();
    if (!other.starts_with(stem) || other.size() != stem.size() + kLetters.size()) continue;
    if (!entry.is_regular_file(error) || entry.is_symlink(error)) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(file);
  }
}

}  // namespace

std::string link_target(const std::string& path) { return followed(path).string(); }

void check_writable(const std::string& path) {
  const fs::path target = checked_target(path);
  // The only sure sign is a file that was made.
  std::string temporary;
  const int file = open_temporary(target, temporary);
  if (file < 0) cannot_write(path, errno);
  ::unlink(temporary.c_str());
  ::close(file);
}

void remove_leftovers(const std::string& path) { remove_leftovers_of(followed(path)); }

void write_atomically(const std::string& path, std::span<const char> content) {
  const fs::path target = checked_target(path);
  remove_leftovers_of(target);
  std::string temporary;
  const int file = open_temporary(target, temporary);
  if (file < 0) cannot_write(path, errno);
  const auto fail = [&](int code) {
    ::unlink(temporary.c_str());
    ::close(file);
    cannot_write(path, code);
  };
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    content = content.subspan(static_cast<std::size_t>(written));
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file, 0666 & ~mask) != 0 || ::fsync(file) != 0) fail(errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) fail(errno);
  if (::close(file) != 0) cannot_write(path, errno);
}

}  // namespace headflow
