#pragma once

// The measures of a task of a sweep. Each gives quantities; the sweep puts those of all tasks
// together.

#include <optional>

#include "core/context.h"
#include "study/config.h"
#include "study/dataset.h"
#include "study/measure_info.h"

namespace headflow {

/// What the measures (measure_info.h) give for a configuration; nothing if stopped.
std::optional<Dataset> measure_task(const Config& config, const Measures& measures,
                                    const Context& context);

}  // namespace headflow
