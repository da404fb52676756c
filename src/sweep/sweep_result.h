#pragma once

// The result of a sweep: one netCDF file whose first dimensions are the axes.

#include <functional>

#include "io/result_file.h"
#include "study/sweep_plan.h"
#include "sweep/task_store.h"

namespace headflow {

/// Gives the result of a task; asked twice for each, in order, so that no more than one need be in
/// memory.
using TaskLoader = std::function<TaskResult(std::size_t task)>;

/// Arrays of all tasks as one; what a task has not is NaN, or the fill value of whole numbers.
/// Throws FileError, and Error if tasks do not fit together.
void write_sweep(const std::string& path, const SweepPlan& plan, const TaskLoader& load,
                 const Provenance& provenance);

}  // namespace headflow
