#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dynamics/flow.h"
#include "model/blocks.h"

namespace headflow {

/// Where a recorded run was at one of its times, or where training ended: m_hf = k_h . k*_f (not in
/// the frame), R, blocks of the activation, and the overlaps p of the hidden directions.
struct RecordedPoint {
  Matrix m, R, p;
  std::map<std::string, Matrix, std::less<>> blocks;  ///< those that the file has, as one row each
  bool verified = true;                               ///< false: the file has no checksum
  std::optional<double> time;                         ///< the recorded time; none: an end
};

/// Reads it from a result file of `headflow flow` or `fixed-point`, from run number `run` (from 1)
/// of a file of SGD runs ("headflow-sgd", or "headflow-comparison"), where R is the positive root
/// of q - m p^-1 m^T, or from minimum number `run` of `headflow minima`. Of a time that is a number
/// the nearest recorded one is taken. Throws FileError, and OptionError for flow.init_run or
/// flow.init_time if there is no such run or time.
RecordedPoint read_recorded_point(const std::string& path, const std::vector<BlockInfo>& blocks,
                                  int run, const FileTime& time = Moment::first);

}  // namespace headflow
