#include "experiments/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/suggest.h"
#include "experiments/measures.h"
#include "io/toml_value.h"

namespace headflow {
namespace {

[[noreturn]] void wrong(const std::string& path, const toml::node& node, const std::string& what) {
  throw Error(fmt::format("{}: {}", place(path, node), what));
}

/// The key that an axis names, and which of its numbers: problem.nu[2] is the second, problem.nu
/// (0) all of it.
struct Target {
  std::string key;
  std::size_t element = 0;
};

Target target_of(const std::string& name) {
  const std::size_t open = name.find('[');
  if (open == std::string::npos || name.size() < open + 3 || name.back() != ']') return {name, 0};
  const std::string digits = name.substr(open + 1, name.size() - open - 2);
  if (digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return {name, 0};
  }
  const auto element = static_cast<std::size_t>(std::stoi(digits));
  return element == 0 ? Target{name, 0} : Target{name.substr(0, open), element};
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

/// Three numbers [first, last, count], or two of a range.
std::vector<double> numbers(const std::string& path, const toml::node& node, std::size_t count) {
  std::vector<double> out;
  const toml::array* array = node.as_array();
  if (array && array->size() == count) {
    for (const toml::node& element : *array) {
      const auto x = element.value<double>();
      if (x && element.is_number()) out.push_back(*x);
    }
  }
  if (out.size() != count) {
    wrong(path, node, count == 2 ? "must be [first, last]" : "must be [first, last, count]");
  }
  return out;
}

Value spaced(double x) {
  if (x == std::floor(x) && std::abs(x) < 1e15) return static_cast<std::int64_t>(x);
  return x;
}

std::vector<std::vector<Value>> points_of(const std::string& path, const toml::table& table,
                                          std::size_t keys) {
  std::vector<std::vector<Value>> out;
  const auto only_one_key = [&](const toml::node& node) {
    if (keys != 1) wrong(path, node, "several keys need values = [[...], ...]");
  };
  int ways = 0;
  if (const toml::node* node = table.get("values")) {
    ++ways;
    const toml::array* array = node->as_array();
    if (!array) wrong(path, *node, "values must be a list");
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
  }
  if (const toml::node* node = table.get("range")) {
    ++ways;
    only_one_key(*node);
    const std::vector<double> ends = numbers(path, *node, 2);
    for (double x = ends[0]; x <= ends[1]; x += 1) out.push_back({spaced(x)});
  }
  for (const char* kind : {"linspace", "logspace"}) {
    const toml::node* node = table.get(kind);
    if (!node) continue;
    ++ways;
    only_one_key(*node);
    const std::vector<double> given = numbers(path, *node, 3);
    const bool log = std::string(kind) == "logspace";
    const auto n = static_cast<int>(given[2]);
    if (n < 1 || n != given[2] || n > 1'000'000) wrong(path, *node, "the count must be from 1 on");
    if (log && (given[0] <= 0 || given[1] <= 0)) wrong(path, *node, "both ends must be positive");
    for (int i = 0; i < n; ++i) {
      const double part = n == 1 ? 0.0 : static_cast<double>(i) / (n - 1);
      double x = log ? given[0] * std::pow(given[1] / given[0], part)
                     : given[0] + (given[1] - given[0]) * part;
      if (i == n - 1 && n > 1) x = given[1];
      out.push_back({Value(x)});
    }
  }
  if (ways != 1 || out.empty()) {
    wrong(path, table, "an axis needs one of values, range, linspace, logspace, and not empty");
  }
  return out;
}

bool as_number(const Value& value, double& x) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    x = static_cast<double>(*i);
    return true;
  }
  if (const auto* d = std::get_if<double>(&value)) {
    x = *d;
    return true;
  }
  return false;
}

/// The numbers that a key holds now.
std::vector<double> list_of(const Key& key) {
  const std::string text = key.show();
  Value value;
  if (text.empty() || !to_value(*toml::parse("x = " + text).get("x"), value)) return {};
  double x = 0;
  if (as_number(value, x)) return {x};
  const auto* matrix = std::get_if<Matrix>(&value);
  if (!matrix || matrix->rows() != 1) return {};
  return {matrix->data(), matrix->data() + matrix->size()};
}

void label(SweepAxis& axis) {
  bool numeric = axis.keys.size() == 1 && axis.labels.empty();
  for (const auto& point : axis.points) {
    double x = 0;
    numeric = numeric && as_number(point[0], x);
    if (numeric) axis.numbers.push_back(x);
  }
  if (!numeric) axis.numbers.clear();
  if (!axis.labels.empty()) return;
  for (const auto& point : axis.points) {
    std::string text;
    for (const Value& value : point) {
      const auto* plain = std::get_if<std::string>(&value);
      const auto* real = std::get_if<double>(&value);
      text += (text.empty() ? "" : " ") + (plain  ? *plain
                                           : real ? fmt::format("{:.6g}", *real)
                                                  : toml_text(value));
    }
    axis.labels.push_back(text);
  }
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
  if (const auto key = table["key"].value<std::string>()) axis.keys = {*key};
  if (const toml::node* keys = table.get("keys")) axis.keys = texts(path, *keys);
  if (axis.keys.empty())
    wrong(path, table, "an axis needs key = \"problem.heads\" or keys = [...]");
  const Session session;
  for (const std::string& name : axis.keys) {
    if (session.keys.find(target_of(name).key)) continue;
    std::vector<std::string> names;
    for (const Key& key : session.keys.all()) names.push_back(key.full_name());
    const std::string hint = closest(names, name);
    wrong(path, table,
          fmt::format("there is no key {}{}", in_quotes(name),
                      hint.empty() ? "" : fmt::format(" (did you mean {}?)", hint)));
  }
  axis.name = table["name"].value_or(axis.keys[0].substr(axis.keys[0].find('.') + 1));
  axis.points = points_of(path, table, axis.keys.size());
  if (const toml::node* labels = table.get("labels")) {
    axis.labels = texts(path, *labels);
    if (axis.labels.size() != axis.points.size()) {
      wrong(path, *labels, fmt::format("must be {} texts, one a value", axis.points.size()));
    }
  }
  label(axis);
  return axis;
}

}  // namespace

std::size_t SweepPlan::tasks() const {
  std::size_t out = 1;
  for (const SweepAxis& axis : axes) out *= axis.points.size();
  return out;
}

std::vector<std::size_t> SweepPlan::position(std::size_t task) const {
  std::vector<std::size_t> out(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    out[a] = task % axes[a].points.size();
    task /= axes[a].points.size();
  }
  return out;
}

void SweepPlan::apply(std::size_t task, Session& session) const {
  const std::vector<std::size_t> at = position(task);
  std::map<std::string, std::map<std::size_t, double>> lists;  // by key and element
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (std::size_t k = 0; k < axes[a].keys.size(); ++k) {
      const Target target = target_of(axes[a].keys[k]);
      const Value& value = axes[a].points[at[a]][k];
      if (target.element == 0) {
        session.keys.set(*session.keys.find(target.key), value, "axis " + axes[a].name);
        continue;
      }
      double& x = lists[target.key][target.element];
      if (!as_number(value, x)) {
        throw Error(fmt::format("axis {}: {} must be a number", axes[a].name, axes[a].keys[k]));
      }
    }
  }
  for (const auto& [name, elements] : lists) {
    const Key& key = *session.keys.find(name);
    const std::vector<double> before = list_of(key);
    const std::size_t size = std::max(before.size(), elements.rbegin()->first);
    Matrix list(1, static_cast<Eigen::Index>(size));
    for (std::size_t i = 0; i < size; ++i) {
      const auto found = elements.find(i + 1);
      if (found == elements.end() && i >= before.size()) {
        throw Error(fmt::format("{0}[{1}] is an axis, but {0}[{2}] is neither an axis nor set",
                                name, elements.rbegin()->first, i + 1));
      }
      list(0, static_cast<Eigen::Index>(i)) = found == elements.end() ? before[i] : found->second;
    }
    session.keys.set(key, Value(list), "axes of " + name);
  }
}

std::string SweepPlan::describe(std::size_t task) const {
  const std::vector<std::size_t> at = position(task);
  std::string out;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    out += fmt::format("{}{} {}", a ? ", " : "", axes[a].name, axes[a].labels[at[a]]);
  }
  return out;
}

std::string SweepPlan::toml() const {
  std::string out = "[sweep]\nmeasure = [";
  for (std::size_t i = 0; i < measures.size(); ++i) {
    out += (i ? ", " : "") + toml_text(measures[i]);
  }
  out += "]\n";
  const auto list = [](const auto& values) {
    std::string text;
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + toml_text(Value(value));
    return "[" + text + "]";
  };
  for (const SweepAxis& axis : axes) {
    out += fmt::format("\n[[sweep.axis]]\nname = {}\nkeys = {}\nvalues = [", toml_text(axis.name),
                       list(axis.keys));
    for (std::size_t i = 0; i < axis.points.size(); ++i) {
      const std::string one =
          axis.keys.size() == 1 ? toml_text(axis.points[i][0]) : list(axis.points[i]);
      out += (i ? ", " : "") + one;
    }
    out += "]\n";
    if (axis.numbers.empty()) out += fmt::format("labels = {}\n", list(axis.labels));
  }
  return out;
}

SweepPlan read_sweep_plan(const std::string& path) {
  const toml::table document = parse_toml(path);
  const toml::table* table = document["sweep"].as_table();
  if (!table) {
    throw Error(
        fmt::format("{}: has no table [sweep], which says what to vary and to measure", path));
  }
  SweepPlan plan;
  for (const auto& [name, node] : *table) {
    const std::string given(name.str());
    if (given == "measure") {
      plan.measures = texts(path, node);
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
          fmt::format("measure = [...] is missing; one or more of {}", measure_names()));
  }
  for (const std::string& measure : plan.measures) {
    if (!is_measure(measure)) {
      wrong(
          path, *table,
          fmt::format("there is no measure {}; there are {}", in_quotes(measure), measure_names()));
    }
  }
  for (std::size_t a = 0; a < plan.axes.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (plan.axes[a].name == plan.axes[b].name) {
        wrong(path, *table, fmt::format("two axes are called {}", plan.axes[a].name));
      }
    }
  }
  return plan;
}

}  // namespace headflow
