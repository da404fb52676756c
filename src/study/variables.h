#pragma once

// A result as netCDF and xarray have it: named variables with dimensions and attributes. The rules
// by which a Dataset becomes such stand here alone, so that a file (io/result_file.h) and what is
// made of a Dataset in memory are the same:
//
// - a quantity is a variable, with its meaning as long_name; one without entries is left out;
// - its errors are a variable beside it, which its attribute ancillary_variables names;
// - dimensions without a coordinate are numbered (`counted`, dataset.h), but for time;
// - whole numbers are integers; where some are unknown, one number stands for these (_FillValue),
//   and xarray shows float64 with NaN;
// - attributes and provenance are global attributes; true and false are 1 and 0.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "study/dataset.h"

namespace headflow {

struct Variable {
  using Values =
      std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>>;

  std::string name;
  Dimensions dimensions;
  Values values;                             ///< rows first
  std::optional<std::int64_t> unknown = {};  ///< the integer that stands for what is unknown
  std::vector<std::pair<std::string, std::string>> attributes = {};
};

/// What stands for an unknown integer: netCDF's own choice (NC_FILL_INT64).
inline constexpr std::int64_t kUnknownInteger = -9223372036854775806;

/// A global attribute; the seed is the one that needs all of uint64.
using GlobalAttribute = std::variant<std::string, double, std::int64_t, std::uint64_t>;

struct NamedVariables {
  Dimensions dimensions;
  std::vector<Variable> variables;
  std::vector<std::pair<std::string, GlobalAttribute>> attributes;
};

/// The attribute that says whether variables are what they were: docs/result_format.md.
inline constexpr const char* kChecksumAttribute = "checksum";

/// All that a file of that result has, in its order; numbers are moved, not copied, out of a
/// Dataset that is not needed any more. The date is now. Throws Error if sizes of a dimension
/// differ.
NamedVariables variables_of(Dataset result);

}  // namespace headflow
