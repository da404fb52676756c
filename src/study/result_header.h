#pragma once

#include <string>
#include <utility>
#include <vector>

#include "study/dataset.h"

namespace headflow {

/// Version of the layout described in docs/result_format.md.
inline constexpr int kResultFormatVersion = 4;

/// What every result says of itself, in a file or as JSON: format, program, date, configuration.
/// The seed is not among them: it may be beyond the range of an AttributeValue.
std::vector<std::pair<std::string, AttributeValue>> result_header(const Dataset& result);

}  // namespace headflow
