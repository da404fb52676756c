#pragma once

// Tasks of sweeps that were computed before. A task is a pure function of its configuration, so
// that whoever needs its numbers may take them from there.

#include <optional>

#include "core/error.h"
#include "study/measures.h"

namespace headflow {

class KnownTasks {
 public:
  virtual ~KnownTasks() = default;
  /// From any thread.
  virtual std::optional<Dataset> find(const Config& config, const Measures& measures) const = 0;
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
