#pragma once

// The result of a sweep: one netCDF file whose first dimensions are the axes.

#include "experiments/sweep_plan.h"
#include "experiments/task_store.h"
#include "io/result_file.h"

namespace headflow {

/// Arrays of all tasks as one, padded with NaN where a task's is smaller. Throws FileError.
void write_sweep(const std::string& path, const SweepPlan& plan,
                 const std::vector<TaskResult>& tasks, const Provenance& provenance);

}  // namespace headflow
