#pragma once

// A sweep as one computation, as those of compute.h: nothing is written, and what is kept of tasks
// goes where the caller says. Sweeps on disk (sweep/sweep.h) are the same tasks, the same crew and
// the same Dataset.
//
//   const SweepPlan plan{{Measure::end}, {make_axis("problem.heads", {2, 3, 4})}};  // check_plan.h
//   const Dataset ends = compute_sweep(plan, config, Context::threads(2));

#include "core/context.h"
#include "study/dataset.h"
#include "study/known_tasks.h"
#include "study/sweep_plan.h"

namespace headflow {

/// What the plan measures, along its axes: `base` is the configuration that they vary. Tasks run
/// side by side on the context's workers. Those that `keeper` has are taken from it, and it is
/// given each that is done. If the sweep is stopped, there is what was done until then: numbers of
/// other tasks are NaN, and the attributes are outcome = "interrupted", tasks, and done. Of a whole
/// sweep there are none. Throws Error, before anything is computed, if the plan (check_plan.h) or a
/// task is wrong; if a task fails, with its name; Interrupted if stopped while tasks are checked.
Dataset compute_sweep(const SweepPlan& plan, const Config& base, const Context& context = {},
                      TaskKeeper* keeper = nullptr);

}  // namespace headflow
