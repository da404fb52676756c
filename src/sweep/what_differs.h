#pragma once

#include <string>

#include "study/sweep_plan.h"

namespace headflow {

/// What a sweep has otherwise than the recorded configuration of an earlier one (TOML):
/// "problem.tokens = 6, was 4; axis seed: 4 values, was 3". Empty if nothing. At most a few things
/// are named.
std::string what_differs(const Config& base, const SweepPlan& plan, const std::string& before);

}  // namespace headflow
