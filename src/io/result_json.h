#pragma once

// Results as JSON: one object with every quantity as a number or as lists in each other, its errors
// beside it, attributes, and an object `provenance`. Entries of a dimension that is a table
// (Dataset::tables) are objects of a list.

#include <string>

#include "study/dataset.h"

namespace headflow {

/// What is unknown, or is no finite number, is null; text that is no UTF-8 is replaced.
std::string json_text(const Dataset& result);

}  // namespace headflow
