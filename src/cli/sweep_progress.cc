#include "cli/sweep_progress.h"

#include "cli/command.h"
#include "cli/watch.h"

namespace headflow::cli {

std::vector<SweepOutcome> sweep_with_progress(std::vector<SweepJob> jobs, int threads,
                                              const std::string& label, bool quiet) {
  catch_interrupts();
  const auto watch = std::make_shared<Watch>(label, quiet);
  std::vector<SweepOutcome> out = run_sweeps(std::move(jobs), {thread_executor(threads), watch});
  watch->finish();
  return out;
}

}  // namespace headflow::cli
