#pragma once

#include <string>

namespace headflow {

/// What one configuration of a sweep (its TOML) has otherwise than another: "problem.tokens = 6,
/// was 4; axis seed: 4 values, was 3". Empty if nothing. At most a few things are named.
std::string what_differs(const std::string& now, const std::string& before);

}  // namespace headflow
