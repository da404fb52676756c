#pragma once

#include <string>

#include "io/result_file.h"
#include "sgd/sgd.h"

namespace headflow {

/// Population losses of the recorded states, [run][output]; empty if they were not asked for.
struct PopulationLoss {
  std::vector<std::vector<double>> loss, error;
  std::string engine;
  ErrorKind error_kind = ErrorKind::refinement;
};

/// How the runs ended.
struct SgdSummary {
  std::string outcome;  ///< finished, diverged or interrupted
  std::int64_t steps = 0;
  double seconds = 0;  ///< of this process
};

/// The variables and attributes of runs of SGD.
void write_sgd_runs(NetcdfWriter& file, const Problem& problem, const SgdOptions& options,
                    const std::vector<std::int64_t>& output_steps,
                    const std::vector<std::vector<SgdRecord>>& recorded,
                    const PopulationLoss& population, const SgdSummary& summary);

/// Writes runs of SGD as netCDF-4. Throws FileError.
void write_sgd_result(const std::string& path, const Problem& problem, const SgdOptions& options,
                      const std::vector<std::int64_t>& output_steps,
                      const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const SgdSummary& summary,
                      const Provenance& provenance);

}  // namespace headflow
