#include "sweep/sweep_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/suggest.h"
#include "io/toml_config.h"
#include "io/toml_value.h"
#include "study/check_plan.h"
#include "study/measure_info.h"

namespace headflow {
namespace {

constexpr double kLargestInteger = 0x1p53;

[[noreturn]] void wrong(const std::string& path, const toml::node& node, const std::string& what) {
  throw Error(fmt::format("{}: {}", place(path, node), what));
}

/// What `body` gives; what it finds wrong was written there.
template <class Body>
auto written_at(const std::string& path, const toml::node& node, const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    wrong(path, node, e.what());
  }
}

std::vector<std::string> texts(const std::string& path, const toml::node& node) {
  std::vector<std::string> out;
  const toml::array* array = node.as_array();
  if (!array) wrong(path, node, "must be a list of texts");
  for (const toml::node& element : *array) {
    const auto text = element.value<std::string>();
    if (!text) wrong(path, element, "must be text in quotes");
    out.push_back(*text);
  }
  return out;
}

/// Three numbers [first, last, count], or two of a range; finite.
std::vector<double> numbers(const std::string& path, const toml::node& node, std::size_t count) {
  std::vector<double> out;
  const toml::array* array = node.as_array();
  if (array && array->size() == count) {
    for (const toml::node& element : *array) {
      const auto x = element.value<double>();
      if (x && element.is_number() && std::isfinite(*x)) out.push_back(*x);
    }
  }
  if (out.size() != count) {
    wrong(path, node,
          fmt::format("must be {}, finite numbers",
                      count == 2 ? "[first, last]" : "[first, last, count]"));
  }
  return out;
}

Value spaced(double x) {
  if (x == std::floor(x) && std::abs(x) < 1e15) return static_cast<std::int64_t>(x);
  return x;
}

using Points = std::vector<std::vector<Value>>;

Points listed(const std::string& path, const toml::node& node, std::size_t keys) {
  Points out;
  const toml::array* array = node.as_array();
  if (!array) wrong(path, node, "values must be a list");
  for (const toml::node& element : *array) {
    const toml::array* together = keys > 1 ? element.as_array() : nullptr;
    if (keys > 1 && (!together || together->size() != keys)) {
      wrong(path, element, fmt::format("must be a list of {} values, one a key", keys));
    }
    std::vector<Value> point(keys);
    for (std::size_t k = 0; k < keys; ++k) {
      const toml::node& one = together ? *together->get(k) : element;
      if (!to_value(one, point[k])) wrong(path, one, "is no value of a key");
    }
    out.push_back(point);
  }
  if (out.empty()) wrong(path, node, "values must not be empty");
  return out;
}

Points ranged(const std::string& path, const toml::node& node) {
  const std::vector<double> ends = numbers(path, node, 2);
  if (ends[0] > ends[1]) {
    wrong(path, node,
          fmt::format("range = [first, last] goes upwards in steps of one, and {} is above {}; for "
                      "another order give values = [...]",
                      ends[0], ends[1]));
  }
  if (std::abs(ends[0]) > kLargestInteger || std::abs(ends[1]) > kLargestInteger ||
      ends[1] - ends[0] >= static_cast<double>(kMostTasks)) {
    wrong(path, node, fmt::format("is more than {} values", kMostTasks));
  }
  Points out;
  const auto count = static_cast<std::size_t>(std::floor(ends[1] - ends[0])) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({spaced(ends[0] + static_cast<double>(i))});
  }
  return out;
}

/// Where a grid meets a short number, that number: 2, and not 1.9999999999999998, which nobody
/// would find in the result.
double short_number(double x) {
  const double decimal = std::stod(fmt::format("{:.12g}", x));
  return std::abs(x - decimal) <= 8 * std::numeric_limits<double>::epsilon() * std::abs(x) ? decimal
                                                                                           : x;
}

Points placed(const std::string& path, const toml::node& node, bool log) {
  const std::vector<double> given = numbers(path, node, 3);
  if (given[2] < 1 || given[2] != std::floor(given[2]) ||
      given[2] > static_cast<double>(kMostTasks)) {
    wrong(path, node, fmt::format("the count must be from 1 to {}", kMostTasks));
  }
  if (log && (given[0] <= 0 || given[1] <= 0)) wrong(path, node, "both ends must be positive");
  const auto n = static_cast<int>(given[2]);
  Points out;
  for (int i = 0; i < n; ++i) {
    const double part = n == 1 ? 0.0 : static_cast<double>(i) / (n - 1);
    double x = log ? given[0] * std::pow(given[1] / given[0], part)
                   : given[0] + (given[1] - given[0]) * part;
    if (i == n - 1 && n > 1) x = given[1];
    if (!std::isfinite(x)) wrong(path, node, "the ends are too far apart");
    out.push_back({Value(short_number(x))});
  }
  return out;
}

Points points_of(const std::string& path, const toml::table& table, std::size_t keys) {
  Points out;
  int ways = 0;
  for (const char* way : {"values", "range", "linspace", "logspace"}) {
    const toml::node* node = table.get(way);
    if (!node) continue;
    ++ways;
    const std::string name = way;
    if (name == "values") {
      out = listed(path, *node, keys);
      continue;
    }
    if (keys != 1) wrong(path, *node, "several keys need values = [[...], ...]");
    out = name == "range" ? ranged(path, *node) : placed(path, *node, name == "logspace");
  }
  if (ways != 1) {
    wrong(path, table, "an axis needs one of values, range, linspace, logspace");
  }
  return out;
}

SweepAxis read_axis(const std::string& path, const toml::table& table) {
  static const std::vector<std::string> known = {"name",  "key",      "keys",     "values",
                                                 "range", "linspace", "logspace", "labels"};
  for (const auto& [name, node] : table) {
    const std::string given(name.str());
    if (std::ranges::find(known, given) != known.end()) continue;
    const std::string hint = closest(known, given);
    wrong(path, node,
          fmt::format("unknown key {} of an axis{}", in_quotes(given),
                      hint.empty() ? "" : fmt::format(" (did you mean {}?)", hint)));
  }
  if (table.get("key") && table.get("keys")) {
    wrong(path, table, "an axis has key = \"...\" or keys = [...], not both");
  }
  std::vector<std::string> keys, labels;
  if (const toml::node* key = table.get("key")) {
    if (!key->is_string()) wrong(path, *key, "key must be text in quotes");
    keys = {*key->value<std::string>()};
  }
  if (const toml::node* several = table.get("keys")) keys = texts(path, *several);
  if (keys.empty()) {
    wrong(path, table, "an axis needs key = \"problem.heads\" or keys = [...]");
  }
  for (const std::string& key : keys) written_at(path, table, [&] { key_of_axis(key); });
  std::optional<std::string> name;
  if (const toml::node* given = table.get("name")) {
    if (!given->is_string()) wrong(path, *given, "name must be text in quotes");
    name = *given->value<std::string>();
  }
  Points points = points_of(path, table, keys.size());
  const toml::node* given_labels = table.get("labels");
  if (given_labels) labels = texts(path, *given_labels);
  if (given_labels && labels.empty()) wrong(path, *given_labels, "labels must not be empty");
  return written_at(path, given_labels ? *given_labels : table, [&] {
    return make_axis(name, std::move(keys), std::move(points), std::move(labels));
  });
}

Measures read_measures(const std::string& path, const toml::node& node) {
  const std::vector<std::string> names = texts(path, node);
  return written_at(path, node, [&] {
    Measures out;
    for (const std::string& name : names) {
      out.push_back(from_name<Measure>("sweep.measure", name));
    }
    return out;
  });
}

SweepPlan read_plan(const toml::table& document, const std::string& path) {
  const toml::table* table = document["sweep"].as_table();
  if (!table) {
    throw Error(
        fmt::format("{}: has no table [sweep], which says what to vary and to measure", path));
  }
  SweepPlan plan;
  for (const auto& [name, node] : *table) {
    const std::string given(name.str());
    if (given == "measure") {
      plan.measures = read_measures(path, node);
    } else if (given == "axis") {
      const toml::array* axes = node.as_array();
      if (!axes) wrong(path, node, "axes are written [[sweep.axis]]");
      for (const toml::node& one : *axes) {
        if (!one.is_table()) wrong(path, one, "axes are written [[sweep.axis]]");
        plan.axes.push_back(read_axis(path, *one.as_table()));
      }
    } else {
      wrong(path, node, fmt::format("unknown key {} in [sweep] (measure, axis)", in_quotes(given)));
    }
  }
  written_at(path, *table, [&] { check_axes(plan); });
  return plan;
}

}  // namespace

SweepFile read_sweep_file(const std::string& path, const GivenFlags& flags) {
  Origins origins;
  return read_sweep_file(path, flags, origins);
}

SweepFile read_sweep_file(const std::string& path, const GivenFlags& flags, Origins& origins) {
  SweepFile out;
  out.path = path;
  const toml::table document = parse_toml(path, &out.text);
  out.plan = read_plan(document, path);
  Origins in_file;
  read_config(document, path, {"sweep", "figure"}, out.base, in_file);
  for (const Key& key : keys()) {  // those of flags stay
    const std::string name = key.full_name(), where = in_file.of(name);
    if (!where.empty() && origins.of(name).empty()) origins.set(name, where);
  }
  for (const auto& [key, value] : flags) {
    key->set(out.base, value);
    out.plan.point_is_given = out.plan.point_is_given || key->section == "point";
  }
  check_given(out.plan, out.base, flags);
  try {
    check_use(out.plan, out.base, flags);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", path, e.what()));
  }
  const auto figure = document["figure"];
  out.figure = figure["part_of"].value_or(std::filesystem::path(path).stem().string());
  out.drawing = figure["drawing"].value_or(std::string());
  out.keep_tasks = figure["keep_tasks"].value_or(false);
  return out;
}

}  // namespace headflow
