#pragma once

#include <optional>
#include <string>

#include "dynamics/flow.h"
#include "io/netcdf_file.h"
#include "study/version.h"

namespace headflow {

/// Version of the layout described in docs/result_format.md.
inline constexpr int kResultFormatVersion = 3;

/// Version and commit; if there are uncommitted changes, also a hash of the program itself: two
/// such builds are not the same program.
std::string build_identity();

/// What produced a result.
struct Provenance {
  std::string configuration;              ///< TOML that reproduces the run
  std::string command;                    ///< the command line, if there was one
  std::optional<std::uint64_t> seed = 0;  ///< none: several
};

/// Writes the trajectory of a flow as netCDF-4. Throws FileError.
void write_flow_result(const std::string& path, const Engine& engine, const Trajectory& trajectory,
                       const FlowSummary& summary, const Provenance& provenance);

// Parts that all result files have in common.

/// Dimensions and coordinates attention_head, other_head, feature and feature2.
void write_axes(NetcdfWriter& file, const Problem& problem);
/// A variable for each block of the activation, from points in the order of the leading dimensions.
void write_blocks(NetcdfWriter& file, const Problem& problem,
                  const std::vector<std::string>& leading, const std::vector<const Blocks*>& values,
                  const std::string& suffix = "");
/// Global attributes that say where a result comes from.
void write_provenance(NetcdfWriter& file, const std::string& title, const std::string& format,
                      const Provenance& provenance);
/// Attributes of a number without a unit, and of the training time.
NetcdfWriter::Attributes described(const std::string& long_name);
NetcdfWriter::Attributes time_attributes();

/// True if the file cannot be read, or its content does not have its checksum.
bool is_damaged(const std::string& path);

/// True if the file is a complete result of this very program version and configuration.
bool is_result_of(const std::string& path, const std::string& configuration);

}  // namespace headflow
