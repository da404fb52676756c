#pragma once

// Commands that print one measure of a sweep's task.

#include "cli/command.h"
#include "study/dataset.h"
#include "study/measure_info.h"

namespace headflow::cli {

/// Measures, and shows it as JSON, as a file or by `print`; the exit code.
int show_measures(Invocation& call, const Measures& measures, void (*print)(const Dataset&));

/// Where training has ended: a line.
void print_end(const Dataset& all);

}  // namespace headflow::cli
