#include "io/result_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "io/netcdf_file.h"
#include "study/version.h"

namespace headflow {
namespace {

using Attributes = NetcdfWriter::Attributes;

std::vector<std::string> names_of(const Dimensions& dimensions) {
  std::vector<std::string> out;
  for (const Dimension& d : dimensions) out.push_back(d.name);
  return out;
}

std::string kinds_text(const std::vector<ErrorKind>& kinds) {
  std::string out;
  for (const ErrorKind kind : kinds) {
    out += (out.empty() ? "" : "; or: ") + std::string(to_string(kind));
  }
  return out;
}

bool is_coordinate(const Quantity& q) {
  return q.dimensions.size() == 1 && q.dimensions[0].name == q.name;
}

void write_dimensions(NetcdfWriter& file, const Dataset& result) {
  std::vector<Dimension> known;
  for (const Quantity& q : result.quantities) {
    if (q.size() == 0) continue;
    for (const Dimension& d : q.dimensions) {
      const auto same = std::ranges::find(known, d.name, &Dimension::name);
      if (same == known.end()) {
        known.push_back(d);
        file.dimension(d.name, d.size);
      } else if (same->size != d.size) {
        throw Error(fmt::format("{} has {} entries along {}, others have {}", q.name, d.size,
                                d.name, same->size));
      }
    }
  }
  for (const Dimension& d : known) {
    if (d.name == "time" || std::ranges::any_of(result.quantities, [&](const Quantity& q) {
          return is_coordinate(q) && q.name == d.name;
        })) {
      continue;
    }
    const CountedDimension count = counted(d.name);
    std::vector<std::int64_t> numbers(d.size);
    std::iota(numbers.begin(), numbers.end(), count.first);
    file.variable(d.name, {d.name}, numbers, {{"long_name", std::string(count.meaning)}});
  }
}

void write_quantity(NetcdfWriter& file, const Quantity& q) {
  const std::vector<std::string> dimensions = names_of(q.dimensions);
  Attributes attributes = {{"long_name", q.meaning}};
  if (!q.is_text() && !q.units.empty()) attributes.emplace_back("units", q.units);
  if (!q.role.empty()) attributes.emplace_back("role", q.role);
  if (!q.errors.empty()) attributes.emplace_back("ancillary_variables", q.name_of_errors());
  if (q.is_text()) {
    file.variable(q.name, dimensions, q.texts, attributes);
  } else if (!q.integers.empty()) {
    file.variable(q.name, dimensions, q.integers, attributes);
  } else if (q.whole) {
    file.whole_variable(q.name, dimensions, q.values, attributes);
  } else {
    file.variable(q.name, dimensions, q.values, attributes);
  }
  if (q.errors.empty()) return;
  Attributes of_errors = {{"long_name", "error of " + q.name}, {"units", q.units}};
  if (!q.error_kinds.empty()) of_errors.emplace_back("error_kind", kinds_text(q.error_kinds));
  file.variable(q.name_of_errors(), dimensions, q.errors, of_errors);
}

void write_attribute(NetcdfWriter& file, const std::string& name, const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) file.attribute(name, *text);
  if (const auto* real = std::get_if<double>(&value)) file.attribute(name, *real);
  if (const auto* count = std::get_if<std::int64_t>(&value)) {
    file.attribute(name, static_cast<long long>(*count));
  }
  if (const auto* flag = std::get_if<bool>(&value)) file.attribute(name, *flag ? 1LL : 0LL);
}

}  // namespace

void write_result(const std::string& path, const Dataset& result) {
  NetcdfWriter file;
  write_dimensions(file, result);
  for (const Quantity& q : result.quantities) {
    if (q.size() > 0) write_quantity(file, q);
  }
  for (const auto& [name, value] : result_header(result)) write_attribute(file, name, value);
  if (result.provenance.seed) file.attribute("seed", *result.provenance.seed);
  for (const auto& [name, value] : result.attributes) write_attribute(file, name, value);
  file.write(path);
}

bool is_damaged(const std::string& path) {
  try {
    static_cast<void>(NetcdfReader(path).verify());
    return false;
  } catch (const Error&) {
    return true;
  }
}

bool is_result_of(const std::string& path, const std::string& configuration) {
  if (read_attribute(path, "configuration") != configuration ||
      read_attribute(path, "program_version") != program_version() ||
      read_attribute(path, "program_commit") != program_commit()) {
    return false;
  }
  return !is_damaged(path) && NetcdfReader(path).verify();  // damaged: as if it were not there
}

}  // namespace headflow
