#pragma once

#include <fmt/format.h>

#include "core/error.h"

namespace headflow {

/// What an absolute error that is asked for (run.tolerance) may be.
inline constexpr double kFinestTolerance = 1e-12, kCoarsestTolerance = 0.1;

inline void check_tolerance(double tolerance) {
  if (tolerance >= kFinestTolerance && tolerance <= kCoarsestTolerance) return;
  throw OptionError("run.tolerance", fmt::format("{:g}", tolerance),
                    fmt::format("must be from {} to {}", kFinestTolerance, kCoarsestTolerance));
}

}  // namespace headflow
