#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/error.h"

namespace headflow {

namespace fs = std::filesystem;

void check_writable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw FileError(path, "is a folder; give the name of a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw FileError(path, "is not a regular file");
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) {
    throw FileError(path, fmt::format("the folder {} does not exist", folder.string()));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw FileError(path,
                    fmt::format("cannot write in {}: {}", folder.string(), std::strerror(errno)));
  }
}

constexpr std::string_view kTemporary = ".XXXXXX";  // mkstemp's letters

void remove_leftovers(const std::string& path) {
  const std::string name = fs::path(path).filename().string() + '.';
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    const bool letters =
        std::all_of(other.begin() + std::ptrdiff_t(std::min(name.size(), other.size())),
                    other.end(), [](unsigned char c) { return std::isalnum(c); });
    if (other.size() == name.size() - 1 + kTemporary.size() && other.starts_with(name) && letters &&
        entry.is_regular_file(error)) {
      fs::remove(entry.path(), error);
    }
  }
}

void write_atomically(const std::string& path, std::span<const char> content) {
  check_writable(path);
  std::string temporary = path + std::string(kTemporary);
  const int file = ::mkstemp(temporary.data());
  if (file < 0) throw FileError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  const auto fail = [&](int code) {
    ::close(file);
    ::unlink(temporary.c_str());
    throw FileError(path, fmt::format("cannot be written: {}", std::strerror(code)));
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
  if (::close(file) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    throw FileError(path, fmt::format("cannot be written: {}", std::strerror(code)));
  }
}

}  // namespace headflow
