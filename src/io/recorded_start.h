#pragma once

#include <string>

#include "study/config.h"

namespace headflow {

struct RecordedStart {
  std::string taken_from;  ///< the file and the time, in words; empty if there is none
  std::string note;        ///< a remark, or nothing
};

/// If flow.init_from is given, reads that file into [point] and problem.p, and flow.init becomes
/// "point": the configuration then reproduces the run without the file. flow.init_noise becomes
/// what it is. Call it before the problem is made. Throws FileError and OptionError.
RecordedStart take_recorded_start(Config& config);

}  // namespace headflow
