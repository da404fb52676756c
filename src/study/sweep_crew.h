#pragma once

// Sweeps under way, in memory or on disk, and the crew that works on all of them together.

#include <string>
#include <vector>

#include "core/context.h"
#include "core/names.h"
#include "study/known_tasks.h"
#include "study/sweep_tasks.h"

namespace headflow {

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

/// A sweep under way: its tasks, how far they are, and where those go that are done. What is
/// virtual is called by one thread at a time.
class RunningSweep {
 public:
  /// `label` begins what progress says of its tasks.
  explicit RunningSweep(SweepTasks tasks, std::string label = "");
  virtual ~RunningSweep() = default;
  RunningSweep(const RunningSweep&) = delete;
  RunningSweep& operator=(const RunningSweep&) = delete;

  const SweepTasks& tasks() const { return tasks_; }
  const std::string& label() const { return label_; }
  bool complete() const { return outcome.done == outcome.tasks; }

  /// Where tasks are kept; null: nowhere.
  virtual TaskKeeper* keeper() = 0;
  /// A task is done now, or was by an earlier run.
  void settle(std::size_t task, const TaskResult& result);
  void keep(std::size_t task, const TaskResult& result);
  /// All of them are.
  virtual void finish() {}

  SweepOutcome outcome;

 private:
  virtual void take(std::size_t /*task*/, const TaskResult& /*result*/) {}

  SweepTasks tasks_;
  std::string label_;
};

/// Computes what is not kept of all sweeps that are not up to date, one task a worker of the
/// context, those first that are expected to take longest; a task that several sweeps have in
/// common is computed once, and so is training that several measure differently. Numbers do not
/// depend on the number of threads. What is stopped, or fails, loses the tasks in flight and no
/// others. Throws what a task throws; outcomes tell what was stopped.
void run_together(const std::vector<RunningSweep*>& sweeps, const Context& context);

}  // namespace headflow
