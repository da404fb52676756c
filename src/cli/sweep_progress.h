#pragma once

#include "experiments/sweep.h"

namespace headflow::cli {

/// run_sweeps with a progress bar; Ctrl-C stops it and keeps finished tasks. Rate and time left are
/// those of this run: tasks kept from an earlier one do not count.
std::vector<SweepOutcome> sweep_with_progress(const std::vector<SweepJob>& jobs, int threads,
                                              const std::string& label, bool quiet);

}  // namespace headflow::cli
