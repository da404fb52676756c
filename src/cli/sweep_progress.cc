#include "cli/sweep_progress.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/command.h"
#include "io/progress.h"

namespace headflow::cli {

std::vector<SweepOutcome> sweep_with_progress(std::vector<SweepJob> jobs, int threads,
                                              const std::string& label, bool quiet) {
  catch_interrupts();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Progress progress(Progress::detect(quiet), label);
  SweepWatch watch;
  watch.progress = [&](const SweepProgress& now) {
    // The bar shows the share of the time since it was made, from which it takes the time left.
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    progress.update(elapsed / (elapsed + now.left),
                    fmt::format("{} of {} tasks  {}", now.done, now.tasks, now.last),
                    static_cast<double>(now.computed), "tasks");
  };
  watch.note = [&](const std::string& text) {
    if (!quiet) fmt::print(stderr, "headflow: note: {}\n", text);
  };
  watch.go_on = [] { return !interrupted(); };
  return run_sweeps(std::move(jobs), threads, watch);
}

}  // namespace headflow::cli
