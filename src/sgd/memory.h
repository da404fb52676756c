#pragma once

// What runs of SGD need in memory, known before they start.

#include <string>

#include "sgd/sgd.h"

namespace headflow {

struct SgdMemory {
  double run = 0;      ///< bytes of one run's vectors, partial sums and scratch space
  double records = 0;  ///< bytes of what is recorded of all runs, and of its way into a file
};

/// An estimate from above.
SgdMemory sgd_memory(const Problem& problem, const SgdOptions& options, int workers);

/// "3.2 GB"
std::string bytes_text(double bytes);

}  // namespace headflow
