#pragma once

// Runs of SGD laid over their limits, from the very same starts.

#include "sgd/limit.h"
#include "sgd/runs.h"

namespace headflow {

/// A limit's trajectories from the starts of the runs, at the times of their records.
struct Theory {
  LimitKind kind = LimitKind::flow;
  std::vector<Trajectory> runs;        ///< one for each run; m as k_h . k*_f
  std::vector<std::vector<Matrix>> q;  ///< [run][output]
  std::string engine;
  ErrorKind error_kind = ErrorKind::refinement;  ///< of the loss
};

/// Of all runs, for limits of that kind. A note says if one diverged. Throws Interrupted.
Theory follow_limit(const Problem& problem, const EngineOptions& engine, const SgdOptions& sgd,
                    const SgdRuns& runs, const LimitOptions& options, const Context& context = {});

/// Deviation of SGD from a theory, over runs, times and entries.
struct Deviation {
  double rms = 0, largest = 0;
};
struct Deviations {
  Deviation m, q;
  Deviation loss;         ///< of the population if that is known, else of a batch with its noise
  std::size_t times = 0;  ///< compared; fewer than recorded if the theory diverged
};
Deviations deviations(const SgdRuns& runs, const Theory& theory);

/// kappa = lr D / batch.
double noise_of(const SgdOptions& options);

}  // namespace headflow
