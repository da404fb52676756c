#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace headflow {
namespace {

ssize_t write_or_drop(void* /*cookie*/, const char* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t written = ::write(STDERR_FILENO, data + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void protect_standard_streams() {
  // Open for reading only: writing to a standard output that was closed must fail.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) == -1 && errno == EBADF) {
      static_cast<void>(::open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
  std::signal(SIGPIPE, SIG_IGN);  // an error of write(), then
  std::signal(SIGXFSZ, SIG_IGN);  // likewise a limit of file sizes
  cookie_io_functions_t functions{};
  functions.write = write_or_drop;
  std::FILE* dropping = ::fopencookie(nullptr, "w", functions);
  if (!dropping) return;
  std::setvbuf(dropping, nullptr, _IONBF, 0);
  stderr = dropping;  // which the GNU C library allows
}

}  // namespace headflow
