#include "experiments/sweep_file.h"

#include <cmath>
#include <map>
#include <numeric>

namespace headflow {
namespace {

/// Arrays of all tasks as one, padded with NaN where a task's is smaller.
struct Assembled {
  std::string long_name;
  std::vector<std::string> dimensions;
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

void copy_block(const Quantity& from, Assembled& to, std::size_t task) {
  std::size_t block = 1;
  for (const std::size_t n : to.shape) block *= n;
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

std::vector<std::pair<std::string, Assembled>> assemble(const std::vector<TaskResult>& tasks) {
  std::vector<std::pair<std::string, Assembled>> out;
  std::map<std::string, std::size_t> largest;  // of each dimension, over everything
  std::map<std::string, std::size_t> where;
  for (const TaskResult& task : tasks) {
    for (const Quantity& q : task.quantities) {
      for (std::size_t d = 0; d < q.shape.size(); ++d) {
        std::size_t& n = largest[q.dimensions[d]];
        n = std::max(n, q.shape[d]);
      }
      if (where.emplace(q.name, out.size()).second) {
        out.push_back({q.name, {q.long_name, q.dimensions, {}, {}}});
      }
    }
  }
  for (auto& [name, array] : out) {
    std::size_t block = 1;
    for (const std::string& dimension : array.dimensions) {
      array.shape.push_back(largest[dimension]);
      block *= largest[dimension];
    }
    array.values.assign(tasks.size() * block, std::nan(""));
  }
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const Quantity& q : tasks[t].quantities) copy_block(q, out[where[q.name]].second, t);
  }
  return out;
}

}  // namespace

void write_sweep(const std::string& path, const SweepPlan& plan,
                 const std::vector<TaskResult>& tasks, const Provenance& provenance) {
  NetcdfWriter file;
  std::vector<std::string> axes;
  for (const SweepAxis& axis : plan.axes) {
    axes.push_back(axis.name);
    file.dimension(axis.name, axis.points.size());
    std::string keys;
    for (const std::string& key : axis.keys) keys += (keys.empty() ? "" : ", ") + key;
    if (axis.numbers.empty()) {
      file.variable(axis.name, {axis.name}, axis.labels, {{"long_name", keys}});
    } else {
      file.variable(axis.name, {axis.name}, axis.numbers, {{"long_name", keys}});
    }
  }
  const auto arrays = assemble(tasks);
  std::map<std::string, std::size_t> own;
  for (const auto& [name, array] : arrays) {
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      own.emplace(array.dimensions[d], array.shape[d]);
    }
  }
  for (const auto& [name, size] : own) file.dimension(name, size);
  for (const auto& [name, size] : own) {
    if (name == "time") continue;
    std::vector<int> numbers(size);
    std::iota(numbers.begin(), numbers.end(), name == "removed" ? 0 : 1);
    file.variable(name, {name}, numbers, {{"long_name", name}});
  }
  for (const auto& [name, array] : arrays) {
    std::vector<std::string> dimensions = axes;
    dimensions.insert(dimensions.end(), array.dimensions.begin(), array.dimensions.end());
    file.variable(name, dimensions, array.values, described(array.long_name));
  }
  write_provenance(file, "sweep", "headflow-sweep", provenance);
  file.write(path);
}

}  // namespace headflow
