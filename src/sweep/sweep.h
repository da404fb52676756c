#pragma once

// Runs the tasks of a sweep and puts what they measure into one file whose dimensions are the axes.
//
// Every finished task is kept at once in a file of its own in the folder OUTPUT.tasks
// (task_store.h), so that a sweep that was stopped or killed goes on where it was, and one that is
// changed computes only what is new. One process at a time works on an output.

#include <string>
#include <vector>

#include "study/measures.h"
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

enum class SweepState {
  up_to_date,  ///< nothing was left to do
  done,
  interrupted,
};
template <>
inline constexpr Named<SweepState> kNames<SweepState>[] = {
    {SweepState::up_to_date, "up to date"},
    {SweepState::done, "done"},
    {SweepState::interrupted, "interrupted"}};

struct SweepOutcome {
  std::size_t tasks = 0, done = 0;
  std::size_t kept = 0;      ///< of these, from an earlier run
  std::size_t shared = 0;    ///< that another sweep, or another task of this one, computes
  std::size_t diverged = 0;  ///< tasks whose training diverged
  double seconds = 0;        ///< of all tasks done, shared ones whole, one after the other
  bool up_to_date = false;
  std::string configuration = {};  ///< of the sweep, as its result records it

  SweepState state() const {
    return up_to_date      ? SweepState::up_to_date
           : done == tasks ? SweepState::done
                           : SweepState::interrupted;
  }
};

/// Tasks of all sweeps together, one a worker of the context, those first that are expected to take
/// longest; a task that several sweeps have in common is computed once, and so is training that
/// several measure differently. Numbers do not depend on the number of threads. Throws Error before
/// anything is computed if a task's configuration is wrong, if OUTPUT is something else than a
/// result that shares tasks with this one, or if another process works on it. What is stopped loses
/// the tasks in flight.
std::vector<SweepOutcome> run_sweeps(std::vector<SweepJob> jobs, const Context& context);

}  // namespace headflow
