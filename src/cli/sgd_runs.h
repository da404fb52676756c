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
};

/// The problem with its prior as it is written, not in the frame of problem.p.
Problem sgd_problem(const Session& session);
/// One start for each run, by sgd.init.
std::vector<SgdState> sgd_starts(const Session& session, const Problem& problem);

/// The flag --tau wins over sgd.steps of a file. Throws OptionError if both are flags.
void settle_length(Session& session);

/// Leaves a checkpoint, also when all steps are taken; call discard_checkpoint when the result is
/// written.
SgdRuns run_sgd(const Invocation& call, const Problem& problem, const std::vector<SgdState>& starts,
                const std::string& label);

void discard_checkpoint(const Session& session);

/// SGD and its limits from the same starts; prints, writes and returns as a command does.
int run_comparison(Invocation& call, const std::string& label);

}  // namespace headflow::cli
