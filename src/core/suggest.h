#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headflow {

/// "softmax" with its quotation marks; shortened, and on one line.
std::string in_quotes(std::string_view text);

/// A text for a message: the beginning and the end of a long one.
std::string shortened(std::string_view text, std::size_t longest = 200);

/// The name closest to a misspelt one, or "" if none is close.
std::string closest(const std::vector<std::string>& names, std::string_view misspelt);

/// A rule for a choice: `must be one of "a", "b" (did you mean "a"?)`.
std::string one_of(const std::vector<std::string>& names, std::string_view given);

}  // namespace headflow
