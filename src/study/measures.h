#pragma once

// The measures of a task of a sweep. Each gives quantities; the sweep puts those of all tasks
// together.

#include <optional>
#include <span>
#include <vector>

#include "core/context.h"
#include "study/config.h"
#include "study/dataset.h"
#include "study/measure_info.h"

namespace headflow {

/// What the measures (measure_info.h) give for a configuration; nothing if stopped.
std::optional<Dataset> measure_task(const Config& config, const Measures& measures,
                                    const Context& context);

/// The same for several lists of measures of one configuration: what training gives is computed
/// once for all of them. A list's numbers do not depend on the others.
std::optional<std::vector<Dataset>> measure_lists(const Config& config,
                                                  std::span<const Measures> lists,
                                                  const Context& context);

}  // namespace headflow
