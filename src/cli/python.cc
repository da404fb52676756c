#include "cli/python.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "cli/command.h"
#include "core/error.h"
#include "core/suggest.h"

extern char** environ;

namespace headflow::cli {

namespace fs = std::filesystem;

std::string data_path(const std::string& name) {
  std::error_code error;
  if (const char* given = std::getenv("HEADFLOW_SHARE"); given && *given) {
    const fs::path place = fs::path(given) / name;
    if (fs::exists(place, error)) return fs::absolute(place, error).string();
    throw Error(
        fmt::format("{} is not there; HEADFLOW_SHARE must name the folder that holds python/ and "
                    "configs/, as PREFIX/share/headflow does",
                    in_quotes(place.string())));
  }
  std::vector<fs::path> places;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path up = program.parent_path().parent_path();
    places.push_back(up / "share/headflow" / name);
    // A source tree that was moved after it was built.
    if (fs::exists(up / "src/cli/python.cc", error)) places.push_back(up / name);
  }
  places.push_back(fs::path(HEADFLOW_SOURCE) / name);
  for (const fs::path& place : places) {
    if (fs::exists(place, error)) return place.string();
  }
  throw Error(fmt::format(
      "{} is neither in {} nor in the source of the program: install it with `make "
      "install`, or let HEADFLOW_SHARE name the folder that holds python/ and configs/",
      name, in_quotes((program.parent_path().parent_path() / "share/headflow").string())));
}

int run_program(const std::vector<std::string>& arguments, bool silent) {
  std::vector<char*> raw;
  raw.reserve(arguments.size() + 1);
  for (const std::string& one : arguments) raw.push_back(const_cast<char*>(one.c_str()));
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (silent) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);  // standard output is for results
  pid_t child = 0;
  const int failed = posix_spawnp(&child, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return 127;
  int status = 0;
  bool told = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted() && !std::exchange(told, true)) ::kill(child, SIGTERM);
    ::usleep(5000);
  }
  if (told || interrupted()) throw Interrupted();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string drawing_python() {
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("PYTHON"); given && *given) candidates.emplace_back(given);
  candidates.insert(candidates.end(), {"/usr/bin/python3", "python3"});
  for (const std::string& python : candidates) {
    // Found, not imported: that would take a second. -P, which leaves out the current folder, is
    // of Python 3.11.
    const std::string check =
        "import importlib.util, sys; "
        "sys.exit(not all(map(importlib.util.find_spec, ('matplotlib', 'xarray', 'netCDF4'))))";
    if (run_program({python, "-P", "-c", check}, true) == 0) return python;
  }
  return "";
}

std::string how_to_draw() {
  return "drawing needs Python 3.11 or later with matplotlib, xarray and netCDF4 (Debian: apt-get "
         "install "
         "python3-matplotlib python3-xarray python3-netcdf4); $PYTHON names another Python";
}

int run_module(const std::string& python, const std::string& module,
               const std::vector<std::string>& arguments, bool silent) {
  static const std::string others = [] {  // an empty one would be the current folder
    const char* given = std::getenv("PYTHONPATH");
    return given && *given ? ":" + std::string(given) : std::string();
  }();
  const fs::path ours = fs::path(data_path("python/headflow")).parent_path();
  ::setenv("PYTHONPATH", (ours.string() + others).c_str(), 1);
  std::vector<std::string> all = {python, "-P", "-m", module};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all, silent);
}

}  // namespace headflow::cli
