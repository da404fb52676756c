#include "sweep/sweep_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/suggest.h"
#include "io/toml_config.h"
#include "io/toml_value.h"
#include "study/measure_info.h"

namespace headflow {
namespace {

constexpr double kLargestInteger = 0x1p53;

[[noreturn]] void wrong(const std::string& path, const toml::node& node, const std::string& what) {
  throw Error(fmt::format("{}: {}", place(path, node), what));
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

/// Numbers, or labels, of the values of an axis.
void label(SweepAxis& axis, const Key& first) {
  bool numeric = axis.keys.size() == 1 && axis.labels.empty();
  for (const auto& point : axis.points) {
    const auto* i = std::get_if<std::int64_t>(&point[0]);
    const auto* x = std::get_if<double>(&point[0]);
    numeric = numeric && (i || x);
    if (!numeric) break;
    axis.numbers.push_back(i ? static_cast<double>(*i) : *x);
    const bool whole = i || (*x == std::floor(*x) && std::abs(*x) < kLargestInteger);
    if (first.kind == ValueKind::integer && whole) {
      axis.integers.push_back(i ? *i : static_cast<std::int64_t>(*x));
    }
  }
  if (!numeric) axis.numbers.clear();
  if (axis.integers.size() != axis.numbers.size()) axis.integers.clear();
  if (!axis.labels.empty()) return;
  for (const auto& point : axis.points) {
    std::string text;
    for (const Value& value : point) {
      const auto* plain = std::get_if<std::string>(&value);
      const auto* real = std::get_if<double>(&value);
      text += (text.empty() ? "" : " ") + (plain  ? *plain
                                           : real ? fmt::format("{:.6g}", *real)
                                                  : value_text(value));
    }
    axis.labels.push_back(text);
  }
}

/// The key of an axis, or an Error that says which one may have been meant.
const Key& key_of(const std::string& path, const toml::table& table, const std::string& name) {
  const AxisTarget target = target_of(name);
  const Key* key = find_key(target.key);
  if (!key) {
    std::vector<std::string> names, homes;
    for (const Key& one : keys()) {
      if (std::ranges::count(swept_sections(), one.section) == 0) continue;
      names.push_back(one.full_name());
      if (one.name == target.key) homes.push_back(one.full_name());
    }
    const std::string list = name.substr(0, name.find('['));
    if (list != name && find_key(list)) {
      wrong(path, table,
            fmt::format("there is no {}: numbers of a list count from 1, as in {}[1]", name, list));
    }
    if (homes.empty() && !closest(names, name).empty()) homes.push_back(closest(names, name));
    wrong(path, table,
          fmt::format(
              "there is no key {}{}", in_quotes(name),
              homes.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(homes, " or "))));
  }
  if (std::ranges::count(swept_sections(), key->section) == 0) {
    wrong(path, table, fmt::format("{} changes nothing that a sweep measures", name));
  }
  if (target.element > 0 && key->kind != ValueKind::matrix) {
    wrong(path, table, fmt::format("{} is no list of numbers", target.key));
  }
  return *key;
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
  SweepAxis axis;
  if (table.get("key") && table.get("keys")) {
    wrong(path, table, "an axis has key = \"...\" or keys = [...], not both");
  }
  if (const toml::node* key = table.get("key")) {
    if (!key->is_string()) wrong(path, *key, "key must be text in quotes");
    axis.keys = {*key->value<std::string>()};
  }
  if (const toml::node* keys = table.get("keys")) axis.keys = texts(path, *keys);
  if (axis.keys.empty()) {
    wrong(path, table, "an axis needs key = \"problem.heads\" or keys = [...]");
  }
  for (const std::string& name : axis.keys) key_of(path, table, name);
  if (const toml::node* name = table.get("name")) {
    if (!name->is_string()) wrong(path, *name, "name must be text in quotes");
    axis.name = *name->value<std::string>();
  } else {  // problem.nu[2] is nu2
    axis.name = axis.keys[0].substr(axis.keys[0].find('.') + 1);
    std::erase(axis.name, '[');
    std::erase(axis.name, ']');
  }
  axis.points = points_of(path, table, axis.keys.size());
  if (const toml::node* labels = table.get("labels")) {
    axis.labels = texts(path, *labels);
    if (axis.labels.size() != axis.points.size()) {
      wrong(path, *labels, fmt::format("must be {} texts, one a value", axis.points.size()));
    }
  }
  label(axis, key_of(path, table, axis.keys[0]));
  return axis;
}

/// What the axes have to keep to together.
void check_axes(const std::string& path, const toml::table& table, const SweepPlan& plan) {
  std::map<std::string, std::string> owner;  // of a key
  std::size_t tasks = 1;
  for (std::size_t a = 0; a < plan.axes.size(); ++a) {
    const SweepAxis& axis = plan.axes[a];
    try {
      check_axis_name(axis.name, plan.measures);
    } catch (const Error& e) {
      wrong(path, table, e.what());
    }
    for (std::size_t b = 0; b < a; ++b) {
      if (axis.name == plan.axes[b].name) {
        wrong(path, table, fmt::format("two axes are called {}", axis.name));
      }
    }
    for (const std::string& key : axis.keys) {
      const auto [at, fresh] = owner.emplace(key, axis.name);
      if (fresh) continue;
      wrong(path, table, fmt::format("the axes {} and {} both set {}", at->second, axis.name, key));
    }
    if (axis.points.size() > kMostTasks / tasks) {
      wrong(path, table,
            fmt::format("the axes make more than {} tasks, the most a sweep may have", kMostTasks));
    }
    tasks *= axis.points.size();
  }
  if (plan.varies("sgd.tau") && plan.varies("sgd.steps")) {
    wrong(path, table, "sgd.tau and sgd.steps are both axes, and both set the length of a run");
  }
}

Measures read_measures(const std::string& path, const toml::node& node) {
  Measures out;
  try {
    for (const std::string& name : texts(path, node)) {
      out.push_back(from_name<Measure>("sweep.measure", name));
    }
  } catch (const OptionError& e) {
    wrong(path, node, e.what());
  }
  return out;
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
  if (plan.measures.empty()) {
    wrong(path, *table,
          fmt::format("measure = [...] is missing; one or more of {}",
                      fmt::join(names_of<Measure>(), ", ")));
  }
  try {
    check_measures(plan.measures);
  } catch (const Error& e) {
    wrong(path, *table, e.what());
  }
  check_axes(path, *table, plan);
  return plan;
}

/// A flag that no task would see is a mistake.
void check_flag(const SweepPlan& plan, const Config& base, const Key& key, const Value& value) {
  const std::string text = value_text(value);
  for (const SweepAxis& axis : plan.axes) {
    for (const std::string& name : axis.keys) {
      if (name != key.full_name()) continue;
      throw Error(fmt::format("{} = {} and the axis {} both set {}: leave one of them out",
                              key.full_name(), text, in_quotes(axis.name), name));
    }
  }
  // --nu 3,4 beside an axis of nu[2]: the 4 would be lost.
  const auto* matrix = std::get_if<Matrix>(&value);
  const std::size_t given = matrix ? static_cast<std::size_t>(matrix->size()) : 1;
  for (const SweepAxis& axis : plan.axes) {
    for (const std::string& name : axis.keys) {
      const AxisTarget target = target_of(name);
      if (target.key != key.full_name() || given == 1 || target.element > given) continue;
      throw Error(fmt::format("{} = {} and the axis {} both set {}: leave one of them out",
                              key.full_name(), text, in_quotes(axis.name), name));
    }
  }
  // One number for several, all of which are axes.
  if (given != 1) return;
  std::string all;
  const std::size_t several = meant_by_one(base, key);
  for (std::size_t i = 1; several > 1 && i <= several; ++i) {
    const std::string element = fmt::format("{}[{}]", key.full_name(), i);
    if (std::ranges::none_of(plan.axes, [&](const SweepAxis& axis) {
          return std::ranges::count(axis.keys, element) > 0;
        })) {
      return;
    }
    all += (i > 1 ? " and " : "") + element;
  }
  if (all.empty()) return;
  throw Error(fmt::format("{} = {} and the axes of {} set the same: leave one of them out",
                          key.full_name(), text, all));
}

/// An axis or a flag that changes nothing is a mistake, too.
void check_use(const SweepFile& file, const GivenFlags& flags) {
  const SweepPlan& plan = file.plan;
  const bool newton = file.base.end.search != EndSearch::flow && !plan.varies("end.search");
  const auto check = [&](const std::string& key, const std::string& what) {
    const std::string why = why_unused(key, plan.measures, newton);
    if (!why.empty()) throw Error(fmt::format("{}: {} changes nothing: {}", file.path, what, why));
  };
  for (const SweepAxis& axis : plan.axes) {
    for (const std::string& name : axis.keys) {
      check(target_of(name).key, fmt::format("the axis of {}", name));
    }
  }
  for (const auto& [key, value] : flags) {
    check(key->full_name(), key->full_name() + " = " + value_text(value));
  }
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
    check_flag(out.plan, out.base, *key, value);
    key->set(out.base, value);
    out.point_is_set = out.point_is_set || key->section == "point";
  }
  for (const Key& key : keys()) {
    if (key.section != "point") continue;
    out.point_is_set = out.point_is_set || out.plan.varies(key.full_name());
  }
  check_use(out, flags);
  const auto figure = document["figure"];
  out.figure = figure["part_of"].value_or(std::filesystem::path(path).stem().string());
  out.drawing = figure["drawing"].value_or(std::string());
  out.keep_tasks = figure["keep_tasks"].value_or(false);
  return out;
}

}  // namespace headflow
