#pragma once

// Numbers as they are written on the command line. Nothing is guessed: a text is a number from its
// first letter to its last, or it is none.

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/matrix.h"

namespace headflow {

/// "-1.5e3": decimal and finite. Spaces around it, none inside, no hexadecimal digits, no nan.
std::optional<double> parse_number(std::string_view text);

/// "-12", and nothing that is not an integer of 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// "1,2;3,4": rows of equal length, numbers separated by commas and rows by semicolons; or as in a
/// file, "[1, 2]" and "[[1, 2], [3, 4]]". Spaces only around numbers, brackets and separators.
std::optional<Matrix> parse_matrix(std::string_view text);

}  // namespace headflow
