#pragma once

// What a computation returns, and every front end shows or writes: named quantities with their
// dimensions, units and errors, and where they come from. netCDF (io/result_file.h) and JSON
// (io/result_json.h) are views of it, which know nothing of what is computed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error_kind.h"

namespace headflow {

struct Dimension {
  std::string name;  ///< attention_head, feature, time, ...
  std::size_t size = 0;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};
using Dimensions = std::vector<Dimension>;

std::size_t size_of(const Dimensions& dimensions);

/// An array of numbers or texts, rows first.
struct Quantity {
  std::string name;     ///< "m"
  std::string meaning;  ///< "overlap of a head with a hidden direction, k_h . k*_f"
  Dimensions dimensions;
  std::vector<double> values;  ///< NaN: unknown
  bool whole = false;          ///< the values are whole numbers, or unknown

  std::vector<double> errors = {};          ///< of the values; none: not known to have any
  std::vector<ErrorKind> error_kinds = {};  ///< one, or several where tasks of a sweep differ
  std::string error_name = {};              ///< if it is not <name>_error

  std::vector<std::string> texts = {};      ///< instead of values
  std::vector<std::int64_t> integers = {};  ///< instead of values: exact, and known
  std::string units = "1";
  std::string role = {};  ///< "parameter": a block of the activation

  std::size_t size() const { return size_of(dimensions); }
  bool is_text() const { return !texts.empty(); }
  std::string name_of_errors() const { return error_name.empty() ? name + "_error" : error_name; }

  Quantity& whole_numbers() {
    whole = true;
    return *this;
  }
  Quantity& with_errors(std::vector<double> of_values, ErrorKind kind) {
    errors = std::move(of_values);
    error_kinds = {kind};
    return *this;
  }
};

using AttributeValue = std::variant<std::string, double, std::int64_t, bool>;

/// What produced a result.
struct Provenance {
  std::string configuration = {};          ///< TOML that reproduces the run
  std::string command = {};                ///< the command line, if there was one
  std::optional<std::uint64_t> seed = {};  ///< none: several, or no randomness
};

struct Dataset {
  std::string format;  ///< "headflow-flow"
  std::string title;   ///< "headflow: flow of the order parameters"
  std::vector<Quantity> quantities;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  Provenance provenance;
  /// Dimensions whose entries are things of their own, and what these are called: JSON has a list
  /// of objects there ("minimum", "minima").
  std::vector<std::pair<std::string, std::string>> tables = {};

  /// Adds numbers, whose count must be that of the dimensions; for the modifiers of Quantity.
  Quantity& add(std::string name, std::string meaning, Dimensions dimensions,
                std::vector<double> values);
  Quantity& add(std::string name, std::string meaning, double value);
  Quantity& add_integers(std::string name, std::string meaning, Dimensions dimensions,
                         std::vector<std::int64_t> integers);
  Quantity& add_texts(std::string name, std::string meaning, Dimensions dimensions,
                      std::vector<std::string> texts);
  /// Sets or replaces an attribute.
  void set(const std::string& name, AttributeValue value);

  /// Null if there is none of that name.
  const Quantity* find(std::string_view name) const;
  /// Throw Error if there is none of that name, or it is of another kind.
  const Quantity& operator[](std::string_view name) const;
  double number(std::string_view name) const;                    ///< a quantity without dimensions
  double error(std::string_view name) const;                     ///< its error
  const AttributeValue* attribute(std::string_view name) const;  ///< null if there is none
  std::string text(std::string_view attribute) const;            ///< empty if there is none
  bool flag(std::string_view attribute) const;                   ///< false if there is none
  std::int64_t count(std::string_view attribute) const;          ///< 0 if there is none
  double real(std::string_view attribute) const;                 ///< NaN if there is none

  /// The same without a dimension: what is at its last entry.
  Dataset last(std::string_view dimension) const;
};

/// Where numbers of a dimension without a coordinate of its own start, and what it counts.
struct CountedDimension {
  int first = 1;
  std::string_view meaning;
};
CountedDimension counted(std::string_view dimension);

}  // namespace headflow
