#pragma once

// The value of a configuration key, as it is written in a file or on the command line, given in
// Python or in the address of a page.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/matrix.h"

namespace headflow {

using Names = std::vector<std::string>;
using Value = std::variant<std::int64_t, double, bool, std::string, Matrix, Names>;

enum class ValueKind { integer, number, text, matrix, names };

/// As in a configuration file: 7, 1.5, "text", [1.0, 2.0], ["a", "b"]. Numbers have as many digits
/// as it takes to read them back.
std::string value_text(const Value& value);

/// From a text: "2", "1,0;0,1", "flow,map". What is no number where one is wanted stays a text, for
/// the message of whoever takes it.
Value parse_value(ValueKind kind, const std::string& text);

/// The number that it is, if it is one.
std::optional<double> to_number(const Value& value);

bool same(const Value& a, const Value& b);

}  // namespace headflow
