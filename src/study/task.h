#pragma once

// A task of a sweep: the program, a configuration, and what is measured of it. It is a pure
// function of these, so that what it gave may be kept under their fingerprint, and taken again.

#include <string>
#include <vector>

#include "core/fingerprint.h"
#include "study/config.h"
#include "study/dataset.h"
#include "study/measure_info.h"

namespace headflow {

/// What a task computes, and the program that does.
struct TaskIdentity {
  std::string program, configuration;
  Fingerprint fingerprint() const;
};

struct TaskResult {
  std::vector<Quantity> quantities;
  double seconds = 0;  ///< that the task took
};

/// The program as tasks know it.
std::string program_identity();
/// Of a task whose start, if it was in a file, has been read.
TaskIdentity task_identity(Config config, const Measures& measures);
/// What it is computed from, whatever is measured.
Fingerprint computed_from(const Config& config);

}  // namespace headflow
