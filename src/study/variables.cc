#include "study/variables.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/content_checksum.h"
#include "core/error.h"
#include "study/result_header.h"

namespace headflow {
namespace {

bool is_coordinate(const Quantity& q) {
  return q.dimensions.size() == 1 && q.dimensions[0].name == q.name;
}

/// Of all quantities, each once.
Dimensions all_dimensions(const Dataset& result) {
  Dimensions out;
  for (const Quantity& q : result.quantities) {
    if (q.size() == 0) continue;
    for (const Dimension& d : q.dimensions) {
      const auto same = std::ranges::find(out, d.name, &Dimension::name);
      if (same == out.end()) {
        out.push_back(d);
      } else if (same->size != d.size) {
        throw Error(fmt::format("{} has {} entries along {}, others have {}", q.name, d.size,
                                d.name, same->size));
      }
    }
  }
  return out;
}

/// The numbers of what a dimension counts.
Variable counting(const Dimension& d) {
  const CountedDimension count = counted(d.name);
  std::vector<std::int64_t> numbers(d.size);
  std::iota(numbers.begin(), numbers.end(), count.first);
  return {d.name, {d}, std::move(numbers), {}, {{"long_name", std::string(count.meaning)}}};
}

std::string kinds_text(const std::vector<ErrorKind>& kinds) {
  std::string out;
  for (const ErrorKind kind : kinds) {
    out += (out.empty() ? "" : "; or: ") + std::string(to_string(kind));
  }
  return out;
}

std::vector<std::int64_t> whole_numbers(const std::vector<double>& values) {
  std::vector<std::int64_t> out;
  out.reserve(values.size());
  for (const double x : values) {
    out.push_back(std::isnan(x) ? kUnknownInteger : static_cast<std::int64_t>(std::llround(x)));
  }
  return out;
}

Variable variable_of(Quantity& q) {
  Variable out{q.name, q.dimensions, {}, {}, {{"long_name", q.meaning}}};
  if (!q.is_text() && !q.units.empty()) out.attributes.emplace_back("units", q.units);
  if (!q.role.empty()) out.attributes.emplace_back("role", q.role);
  if (!q.errors.empty()) out.attributes.emplace_back("ancillary_variables", q.name_of_errors());
  if (q.is_text()) {
    out.values = std::move(q.texts);
  } else if (!q.integers.empty()) {
    out.values = std::move(q.integers);
  } else if (q.whole) {
    std::vector<std::int64_t> numbers = whole_numbers(q.values);
    if (std::ranges::count(numbers, kUnknownInteger) > 0) out.unknown = kUnknownInteger;
    out.values = std::move(numbers);
  } else {
    out.values = std::move(q.values);
  }
  return out;
}

Variable errors_of(Quantity& q) {
  Variable out{q.name_of_errors(),
               q.dimensions,
               std::move(q.errors),
               {},
               {{"long_name", "error of " + q.name}, {"units", q.units}}};
  if (!q.error_kinds.empty()) out.attributes.emplace_back("error_kind", kinds_text(q.error_kinds));
  return out;
}

GlobalAttribute global(const AttributeValue& value) {
  return std::visit(
      [](const auto& x) -> GlobalAttribute {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, bool>) {
          return std::int64_t{x};
        } else {
          return x;
        }
      },
      value);
}

std::string checksum_text(const std::vector<Variable>& variables) {
  ContentChecksum out;
  for (const Variable& variable : variables) {
    std::vector<std::size_t> shape;
    for (const Dimension& d : variable.dimensions) shape.push_back(d.size);
    std::visit([&](const auto& values) { out.add(variable.name, shape, values); }, variable.values);
  }
  return out.text();
}

}  // namespace

NamedVariables variables_of(Dataset result) {
  NamedVariables out{all_dimensions(result), {}, {}};
  for (const Dimension& d : out.dimensions) {
    const bool has_own = std::ranges::any_of(
        result.quantities, [&](const Quantity& q) { return is_coordinate(q) && q.name == d.name; });
    if (d.name != "time" && !has_own) out.variables.push_back(counting(d));
  }
  for (Quantity& q : result.quantities) {
    if (q.size() == 0) continue;
    out.variables.push_back(variable_of(q));
    if (!q.errors.empty()) out.variables.push_back(errors_of(q));
  }
  for (const auto& [name, value] : result_header(result)) {
    out.attributes.emplace_back(name, global(value));
  }
  if (result.provenance.seed) out.attributes.emplace_back("seed", *result.provenance.seed);
  for (const auto& [name, value] : result.attributes) {
    out.attributes.emplace_back(name, global(value));
  }
  out.attributes.emplace_back(kChecksumAttribute, checksum_text(out.variables));
  return out;
}

}  // namespace headflow
