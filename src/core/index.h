#pragma once

#include <concepts>
#include <cstddef>

namespace headflow {

/// An index that is known not to be negative, for the standard containers.
constexpr std::size_t at(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }
/// What rounds says so.
constexpr std::size_t at(std::floating_point auto) = delete;

}  // namespace headflow
