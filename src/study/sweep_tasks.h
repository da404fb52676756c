#pragma once

// The tasks of a sweep: what each computes, all of them checked before the first one runs.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "study/sweep_plan.h"
#include "study/task.h"

namespace headflow {

/// Turns a start from a file into numbers of the configuration.
using StartReader = std::function<void(Config&)>;
/// Where there are no files: throws OptionError if the start is still to be read.
void no_start_to_read(Config& config);

class SweepTasks {
 public:
  /// Checks all tasks. `name`, the file of the sweep if there is one, begins what is said of it.
  /// Throws Error, which names the first task that is wrong, and Interrupted.
  SweepTasks(SweepPlan plan, Config base, const Context& context, std::string name = "",
             StartReader read_start = no_start_to_read);

  const SweepPlan& plan() const { return plan_; }
  const Config& base() const { return base_; }
  std::size_t count() const { return plan_.tasks(); }
  std::string describe(std::size_t task) const { return plan_.describe(task); }
  /// "sweep.toml: heads 3: ", before what is said of a task.
  std::string about(std::size_t task) const;

  /// The configuration of a task, which is all that it depends on.
  Config config_of(std::size_t task) const;
  /// What a task of this configuration computes.
  TaskIdentity identity(const Config& config) const {
    return task_identity(config, plan_.measures);
  }
  /// Of the identity of each task, when it was checked.
  const std::vector<Fingerprint>& fingerprints() const { return fingerprints_; }

  /// What a result records: the configuration with all axes spelled out, and the seed if there is
  /// one for all.
  std::string configuration() const;
  Provenance provenance() const;

  /// The task, of that configuration, for each of these lists of measures; nothing if stopped.
  /// Throws Error, which names the task.
  std::optional<std::vector<TaskResult>> compute(std::size_t task, const Config& config,
                                                 const std::vector<Measures>& lists,
                                                 const Context& context) const;

 private:
  void check(const Context& context);

  SweepPlan plan_;
  Config base_;
  std::string name_;
  StartReader read_start_;
  std::vector<Fingerprint> fingerprints_;
};

}  // namespace headflow
