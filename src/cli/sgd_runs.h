#pragma once

// SGD with progress, checkpoints and interrupts: for the commands sgd, compare and paper.

#include "cli/command.h"
#include "io/sgd_file.h"

namespace headflow::cli {

struct SgdRuns {
  std::vector<std::int64_t> output_steps;
  std::vector<std::vector<SgdRecord>> recorded;  ///< [run][output]
  PopulationLoss population;
  SgdSummary summary;
  std::int64_t step = 0;  ///< that the same command would go on from
};

/// The problem with its prior as it is written, not in the frame of problem.p.
Problem sgd_problem(const Config& config);
/// One start for each run, by sgd.init.
std::vector<SgdState> checked_starts(const Invocation& call, const Problem& problem);

/// The flag --tau wins over sgd.steps of a file. Throws OptionError if both are flags.
void settle_length(Invocation& call);

/// Leaves a checkpoint, also when all steps are taken; call discard_checkpoints when the result is
/// written. Without a single output time (it was interrupted at once) `recorded` has none, either.
SgdRuns run_sgd(const Invocation& call, const Problem& problem, const std::vector<SgdState>& starts,
                const std::string& label);

/// What is said when the runs were interrupted.
std::string after_interrupt(const Config& config, const SgdRuns& runs);

/// SGD and its limits from the same starts; prints, writes and returns as a command does.
int run_comparison(Invocation& call, const std::string& label);

}  // namespace headflow::cli
