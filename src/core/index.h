#pragma once

#include <cstddef>

namespace headflow {

/// An index that is known not to be negative, for the standard containers.
constexpr std::size_t at(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

}  // namespace headflow
