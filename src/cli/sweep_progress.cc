#include "cli/sweep_progress.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "io/progress.h"

namespace headflow::cli {

std::vector<SweepOutcome> sweep_with_progress(const std::vector<SweepJob>& jobs, int threads,
                                              const std::string& label, bool quiet) {
  catch_interrupts();
  Progress progress(Progress::detect(quiet), label);
  bool first = true;
  std::size_t kept = 0;
  return run_sweeps(
      jobs, threads,
      [&](std::size_t done, std::size_t all, const std::string& task) {
        if (first) kept = done - 1;
        first = false;
        const auto now = static_cast<double>(done - kept);
        progress.update(now / static_cast<double>(all - kept),
                        fmt::format("{} of {} tasks  {}", done, all, task), now, "tasks");
      },
      [] { return !interrupted(); });
}

}  // namespace headflow::cli
