#include "io/result_file.h"

#include "core/error.h"
#include "io/netcdf_file.h"
#include "study/variables.h"
#include "study/version.h"

namespace headflow {
namespace {

void write_variable(NetcdfWriter& file, const Variable& one) {
  std::vector<std::string> dimensions;
  for (const Dimension& d : one.dimensions) dimensions.push_back(d.name);
  std::visit(
      [&](const auto& values) {
        if constexpr (std::is_same_v<decltype(values), const std::vector<std::int64_t>&>) {
          file.variable(one.name, dimensions, values, one.attributes, one.unknown);
        } else {
          file.variable(one.name, dimensions, values, one.attributes);
        }
      },
      one.values);
}

}  // namespace

void write_result(const std::string& path, Dataset result) {
  const NamedVariables all = variables_of(std::move(result));
  NetcdfWriter file;
  for (const Dimension& d : all.dimensions) file.dimension(d.name, d.size);
  for (const Variable& one : all.variables) write_variable(file, one);
  for (const auto& one : all.attributes) {
    if (one.first == kChecksumAttribute) continue;  // the writer's own
    std::visit([&](const auto& value) { file.attribute(one.first, value); }, one.second);
  }
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
