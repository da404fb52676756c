#pragma once

// Sweeps on disk: what compute_sweep (study/compute_sweep.h) returns, in a file, and several of
// them by one crew.
//
// Every finished task is kept at once in a file of its own in the folder OUTPUT.tasks
// (task_store.h), so that a sweep that was stopped or killed goes on where it was, and one that is
// changed computes only what is new. One process at a time works on an output.

#include <string>
#include <vector>

#include "study/sweep_crew.h"
#include "sweep/sweep_file.h"

namespace headflow {

struct SweepJob {
  SweepFile file;
  std::string output;  ///< result file
  std::string command_line;
  std::string label;       ///< before the text about a task
  bool replace = false;    ///< whatever stands in the way of the result is replaced, not refused
  bool keep_tasks = true;  ///< OUTPUT.tasks stays when the result is written
};

/// All of them side by side (run_together). Throws Error before anything is computed if a task's
/// configuration is wrong, if OUTPUT is something else than a result that shares tasks with this
/// one, or if another process works on it. What is stopped loses the tasks in flight.
std::vector<SweepOutcome> run_sweeps(std::vector<SweepJob> jobs, const Context& context);

}  // namespace headflow
