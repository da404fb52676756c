#pragma once

#include <optional>
#include <string>

#include "io/result_file.h"
#include "sgd/sgd.h"

namespace headflow {

/// Population losses of the recorded states, [run][output]; empty if they were not asked for.
struct PopulationLoss {
  std::vector<std::vector<double>> loss, error;
  std::string engine, error_kind;
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

/// The file that a killed run goes on from, beside its result file.
std::string checkpoint_path(const std::string& result_path);
void write_checkpoint(const std::string& path, const SgdCheckpoint& checkpoint,
                      const std::string& configuration);
/// Nothing if there is no such file. Throws FileError if it is of another configuration or program.
std::optional<SgdCheckpoint> read_checkpoint(const std::string& path,
                                             const std::string& configuration);

}  // namespace headflow
