#pragma once

#include "dynamics/flow.h"
#include "io/sgd_file.h"

namespace headflow {

/// A theory's trajectories from the starts of the runs, at the output times of SGD.
struct Theory {
  std::string name;              ///< flow, kappa or map
  std::vector<Trajectory> runs;  ///< one for each run; m as k_h . k*_f
  std::vector<std::vector<Matrix>> q;
  std::string engine;
  ErrorKind error_kind = ErrorKind::refinement;  ///< of the loss
};

/// Deviation of SGD from a theory, over runs, times and entries.
struct Deviation {
  double rms = 0, largest = 0;
};
struct Deviations {
  Deviation m, q;
  Deviation loss;         ///< of the population if that is known, else of a batch with its noise
  std::size_t times = 0;  ///< compared; fewer than recorded if the theory diverged
};
Deviations deviations(const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const Theory& theory);

/// Runs of SGD with theories beside them: variables m_theory, q_theory, ... with the dimension
/// `theory`. Throws FileError.
void write_comparison(const std::string& path, const Problem& problem, const SgdOptions& options,
                      const std::vector<std::int64_t>& output_steps,
                      const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const SgdSummary& summary,
                      const std::vector<Theory>& theories, const Provenance& provenance);

}  // namespace headflow
