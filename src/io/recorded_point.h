#pragma once

#include <string>

#include "model/point.h"

namespace headflow {

/// Where a recorded run was at its first time: m_hf = k_h . k*_f (not in the frame), R, b and v,
/// and the overlaps p of the hidden directions.
struct RecordedPoint {
  Point user;
  Matrix p;
  bool verified = true;  ///< false: the file has no checksum
};

/// Reads it from a result file of `headflow flow`, or from run number `run` (from 1) of a
/// file of SGD runs ("headflow-sgd"), where R is the positive root of q - m p^-1 m^T.
/// Throws FileError, and OptionError for flow.init_run if there is no such run.
RecordedPoint read_recorded_point(const std::string& path, int run);

}  // namespace headflow
