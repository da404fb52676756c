#pragma once

// The result of a sweep: quantities whose first dimensions are the axes.

#include <functional>

#include "study/dataset.h"
#include "study/sweep_plan.h"
#include "study/task.h"

namespace headflow {

/// Gives the result of a task; asked twice for each, in order, so that no more than one need be in
/// memory.
using TaskLoader = std::function<TaskResult(std::size_t task)>;

/// Quantities of all tasks as one; what a task has not, or all of one without quantities, is NaN.
/// Throws Error if tasks do not fit together.
Dataset sweep_dataset(const SweepPlan& plan, const TaskLoader& load, const Provenance& provenance);

}  // namespace headflow
