#pragma once

// What the commands sgd and compare have in common: checkpoints, and words on interrupts.

#include <optional>

#include "cli/command.h"
#include "study/compute.h"

namespace headflow::cli {

/// The flag --tau wins over sgd.steps of a file; flags of [point] without sgd.init = "point" are
/// refused. Throws Error.
void settle_sgd(Invocation& call);

using ComputeRuns = Dataset (*)(const Config&, const Context&, SgdStore*);

/// Computes with checkpoints beside result.output, on from where an earlier process was, if it has
/// left one that is whole. Nothing, after a word, if it was interrupted in the first step.
std::optional<Dataset> run_with_store(const Invocation& call, const std::string& label,
                                      ComputeRuns compute);

/// Says what follows from an interrupt, or removes the checkpoints of a result that is written;
/// the exit code.
int sgd_exit(const Invocation& call, const Dataset& result);

}  // namespace headflow::cli
