#pragma once

#include "sweep/sweep.h"

namespace headflow::cli {

/// run_sweeps with a progress bar and notes; Ctrl-C stops it and keeps finished tasks.
std::vector<SweepOutcome> sweep_with_progress(std::vector<SweepJob> jobs, int threads,
                                              const std::string& label, bool quiet);

}  // namespace headflow::cli
