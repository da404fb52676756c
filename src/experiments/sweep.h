#pragma once

// Runs the tasks of a sweep and puts what they measure into one file whose dimensions are the axes.
//
// Every finished task is kept at once in a file of its own in the folder OUTPUT.tasks, so that a
// sweep that was stopped or killed goes on where it was; the folder is removed when the result has
// been written. It belongs to one configuration of one version of the program.

#include <functional>
#include <string>

#include "experiments/sweep_plan.h"

namespace headflow {

struct SweepOptions {
  std::string file;    ///< configuration file with the table [sweep]
  std::string output;  ///< result file
  int threads = 0;     ///< tasks at the same time; 0: one a core
  std::string command_line;
  /// Sets keys that win over the file (flags), in every task before the axes are applied.
  std::function<void(Session&)> override_keys;
};

struct SweepOutcome {
  std::size_t tasks = 0, done = 0;
  std::size_t kept = 0;  ///< of these, from an earlier run
  bool up_to_date = false;
};

/// Told the tasks done (those kept included) and a text about the last; false stops.
using SweepObserver = std::function<bool(std::size_t, const std::string&)>;

/// Numbers do not depend on the number of threads. Throws Error before anything is computed if a
/// task's configuration is wrong, or if OUTPUT or OUTPUT.tasks belong to another configuration.
SweepOutcome run_sweep(const SweepPlan& plan, const SweepOptions& options,
                       const SweepObserver& observer);

}  // namespace headflow
