#pragma once

// Runs the tasks of a sweep and puts what they measure into one file whose dimensions are the axes.
//
// Every finished task is kept at once in a file of its own in the folder OUTPUT.tasks, so that a
// sweep that was stopped or killed goes on where it was; the folder is removed when the result has
// been written. It belongs to one configuration of one version of the program.

#include <functional>
#include <string>
#include <vector>

#include "experiments/measures.h"
#include "experiments/sweep_plan.h"

namespace headflow {

struct SweepOptions {
  std::string file;    ///< configuration file with the table [sweep]
  std::string output;  ///< result file
  std::string command_line;
  std::string label;     ///< before the text about a task
  bool replace = false;  ///< a result of another configuration or version is replaced, not refused
  /// Sets keys that win over the file (flags), in every task before the axes are applied.
  std::function<void(Session&)> override_keys;
};

struct SweepJob {
  SweepPlan plan;
  SweepOptions options;
};

struct SweepOutcome {
  std::size_t tasks = 0, done = 0;
  std::size_t kept = 0;    ///< of these, from an earlier run
  std::size_t shared = 0;  ///< that another sweep computes
  double seconds = 0;      ///< of all tasks done, one after the other
  bool up_to_date = false;
};

/// Told the tasks done (those kept included), their number and a text about the last.
using SweepObserver = std::function<void(std::size_t, std::size_t, const std::string&)>;

/// Tasks of all sweeps together, `threads` at the same time (0: one a core); a task that several
/// sweeps have in common is computed once. Numbers do not depend on the number of threads. Throws
/// Error before anything is computed if a task's configuration is wrong, or if OUTPUT or
/// OUTPUT.tasks belong to another configuration. `go_on` is asked all the time; false stops, and
/// loses the tasks in flight.
std::vector<SweepOutcome> run_sweeps(const std::vector<SweepJob>& jobs, int threads,
                                     const SweepObserver& observer, const GoOn& go_on);

}  // namespace headflow
