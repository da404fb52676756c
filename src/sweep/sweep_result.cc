#include "sweep/sweep_result.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"

namespace headflow {
namespace {

/// Arrays of all tasks as one, padded with NaN where a task's is smaller.
struct Assembled {
  std::string name;
  std::vector<std::string> long_names;  // in general one
  std::vector<std::string> dimensions;
  bool whole = false;
  std::vector<std::size_t> shape;
  std::vector<double> values;

  std::size_t block() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  }
};

void copy_block(const Quantity& from, Assembled& to, std::size_t task) {
  const std::size_t block = to.block();
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    std::size_t rest = i, place = 0, stride = 1;
    for (std::size_t d = from.shape.size(); d-- > 0;) {
      place += rest % from.shape[d] * stride;
      rest /= from.shape[d];
      stride *= to.shape[d];
    }
    to.values[task * block + place] = from.values[i];
  }
}

std::vector<Assembled> assemble(std::size_t tasks, const TaskLoader& load) {
  std::vector<Assembled> out;
  std::map<std::string, std::size_t> largest;  // of each dimension, over everything
  std::map<std::string, std::size_t> where;
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const Quantity& q : load(t).quantities) {
      for (std::size_t d = 0; d < q.shape.size(); ++d) {
        std::size_t& n = largest[q.dimensions[d]];
        n = std::max(n, q.shape[d]);
      }
      const auto [at, fresh] = where.emplace(q.name, out.size());
      if (fresh) out.push_back({q.name, {}, q.dimensions, q.whole, {}, {}});
      Assembled& array = out[at->second];
      if (array.dimensions != q.dimensions || array.whole != q.whole) {
        throw Error(fmt::format("tasks give {} in different shapes", q.name));
      }
      if (std::ranges::count(array.long_names, q.long_name) == 0) {
        array.long_names.push_back(q.long_name);
      }
    }
  }
  for (Assembled& array : out) {
    for (const std::string& dimension : array.dimensions) {
      array.shape.push_back(largest[dimension]);
    }
    array.values.assign(tasks * array.block(), std::nan(""));
  }
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const Quantity& q : load(t).quantities) copy_block(q, out[where.at(q.name)], t);
  }
  return out;
}

/// The output times, if they are the same for all tasks.
std::vector<double> common_times(const std::vector<Assembled>& arrays) {
  for (const Assembled& array : arrays) {
    if (array.name != "tau" || array.dimensions != std::vector<std::string>{"time"}) continue;
    const std::size_t n = array.block();
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      if (!(array.values[i] == array.values[i % n])) return {};
    }
    return {array.values.begin(), array.values.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  return {};
}

void write_axis(NetcdfWriter& file, const SweepAxis& axis) {
  file.dimension(axis.name, axis.points.size());
  const NetcdfWriter::Attributes keys = {
      {"long_name", fmt::format("{}", fmt::join(axis.keys, ", "))}};
  if (!axis.integers.empty()) {
    file.variable(axis.name, {axis.name}, axis.integers, keys);
  } else if (!axis.numbers.empty()) {
    file.variable(axis.name, {axis.name}, axis.numbers, keys);
  } else {
    file.variable(axis.name, {axis.name}, axis.labels, keys);
  }
}

/// Dimensions that the quantities have of their own, and their coordinates.
void write_own_dimensions(NetcdfWriter& file, const std::vector<Assembled>& arrays) {
  std::map<std::string, std::size_t> own;
  for (const Assembled& array : arrays) {
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      own.emplace(array.dimensions[d], array.shape[d]);
    }
  }
  for (const auto& [name, size] : own) file.dimension(name, size);
  const std::vector<double> times = common_times(arrays);
  for (const auto& [name, size] : own) {
    if (name == "time") {
      if (!times.empty()) file.variable(name, {name}, times, time_attributes());
      continue;
    }
    std::vector<int> numbers(size);
    std::iota(numbers.begin(), numbers.end(), name == "removed" ? 0 : 1);
    file.variable(name, {name}, numbers, {{"long_name", name}});
  }
}

}  // namespace

void write_sweep(const std::string& path, const SweepPlan& plan, const TaskLoader& load,
                 const Provenance& provenance) {
  NetcdfWriter file;
  std::vector<std::string> axes;
  for (const SweepAxis& axis : plan.axes) {
    axes.push_back(axis.name);
    write_axis(file, axis);
  }
  const std::vector<Assembled> arrays = assemble(plan.tasks(), load);
  write_own_dimensions(file, arrays);
  for (const Assembled& array : arrays) {
    std::vector<std::string> dimensions = axes;
    dimensions.insert(dimensions.end(), array.dimensions.begin(), array.dimensions.end());
    const auto attributes = described(fmt::format("{}", fmt::join(array.long_names, "; or: ")));
    if (array.whole) {
      file.whole_variable(array.name, dimensions, array.values, attributes);
    } else {
      file.variable(array.name, dimensions, array.values, attributes);
    }
  }
  write_provenance(file, "sweep", "headflow-sweep", provenance);
  file.write(path);
}

}  // namespace headflow
