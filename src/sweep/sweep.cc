#include "sweep/sweep.h"

#include <memory>
#include <utility>

#include "core/error.h"
#include "sweep/stored_sweep.h"

namespace headflow {

std::vector<SweepOutcome> run_sweeps(std::vector<SweepJob> jobs, const Context& context) {
  std::vector<SweepOutcome> out(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) out[i].tasks = jobs[i].file.plan.tasks();
  std::vector<std::unique_ptr<StoredSweep>> sweeps;
  std::vector<RunningSweep*> together;
  try {
    for (SweepJob& job : jobs) {
      together.push_back(
          sweeps.emplace_back(std::make_unique<StoredSweep>(std::move(job), context)).get());
    }
    run_together(together, context);
  } catch (const Interrupted&) {
    // before anything was computed
  }
  for (std::size_t i = 0; i < sweeps.size(); ++i) out[i] = sweeps[i]->outcome;
  return out;
}

}  // namespace headflow
