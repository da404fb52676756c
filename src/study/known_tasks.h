#pragma once

// Tasks of sweeps that were computed before. A task is a pure function of its configuration, so
// that whoever needs its numbers may take them from there. Where they are is for others to say: a
// folder (sweep/task_store.h), a database, or a dictionary of Python.

#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "study/measures.h"
#include "study/task.h"

namespace headflow {

class KnownTasks {
 public:
  enum class Found { nothing, damaged, whole };
  struct Loaded {
    Found found = Found::nothing;
    TaskResult result = {};
    std::string why = {};  ///< what is damaged: "sweep.nc.tasks/0123.task is damaged: ..."
  };

  virtual ~KnownTasks() = default;
  /// From any thread. What is damaged is computed again, and said.
  virtual Loaded load(const TaskIdentity& task) const = 0;

  /// What the measures give for a configuration, if it is there.
  std::optional<Dataset> find(const Config& config, const Measures& measures) const {
    Loaded loaded = load(task_identity(config, measures));
    if (loaded.found != Found::whole) return std::nullopt;
    return Dataset{
        "headflow-measures", "headflow: measures", std::move(loaded.result.quantities), {}, {}};
  }
};

/// Keeps tasks, too. What it loads must be what it was given, to the last bit: a sweep is put
/// together from both.
class TaskKeeper : public KnownTasks {
 public:
  /// From any thread, but by one at a time. The task is kept when this returns.
  virtual void save(const TaskIdentity& task, const TaskResult& result) = 0;
};

/// From there (null: from nowhere), or measured now. Throws Interrupted if stopped.
inline Dataset known_or_measured(const KnownTasks* known, const Config& config,
                                 const Measures& measures, const Context& context) {
  std::optional<Dataset> out = known ? known->find(config, measures) : std::nullopt;
  if (!out) out = measure_task(config, measures, context);
  if (!out) throw Interrupted();
  return std::move(*out);
}

}  // namespace headflow
