#pragma once

#include <fmt/format.h>

#include <string>

#include "core/error.h"

namespace headflow {

/// Throws OptionError for the key unless the rule holds.
inline void require(bool holds, const std::string& key, double value, const std::string& rule) {
  if (!holds) throw OptionError(key, fmt::format("{}", value), rule);
}

}  // namespace headflow
