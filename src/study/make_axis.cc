#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/suggest.h"
#include "study/check_plan.h"

namespace headflow {
namespace {

constexpr double kLargestWhole = 0x1p53;  // up to here every whole number is a double

/// Numbers of the values of an axis, if each is one.
void set_numbers(SweepAxis& axis, const Key& first) {
  if (axis.keys.size() > 1 || !axis.labels.empty()) return;
  for (const auto& point : axis.points) {
    const auto* i = std::get_if<std::int64_t>(&point[0]);
    const auto* x = std::get_if<double>(&point[0]);
    if (!i && !x) {
      axis.numbers.clear();
      axis.integers.clear();
      return;
    }
    axis.numbers.push_back(i ? static_cast<double>(*i) : *x);
    const bool whole = i || (*x == std::floor(*x) && std::abs(*x) < kLargestWhole);
    if (first.kind == ValueKind::integer && whole) {
      axis.integers.push_back(i ? *i : static_cast<std::int64_t>(*x));
    }
  }
  if (axis.integers.size() != axis.numbers.size()) axis.integers.clear();
}

/// "gaussian 5"
std::string label_of(const std::vector<Value>& point) {
  std::string out;
  for (const Value& value : point) {
    const auto* plain = std::get_if<std::string>(&value);
    const auto* real = std::get_if<double>(&value);
    out += (out.empty() ? "" : " ") + (plain  ? *plain
                                       : real ? fmt::format("{:.6g}", *real)
                                              : value_text(value));
  }
  return out;
}

/// There is no such key; another may have been meant.
[[noreturn]] void refuse_key(const std::string& name, const AxisTarget& target) {
  std::vector<std::string> names, homes;
  for (const Key& one : keys()) {
    if (std::ranges::count(swept_sections(), one.section) == 0) continue;
    names.push_back(one.full_name());
    if (one.name == target.key) homes.push_back(one.full_name());
  }
  const std::string list = name.substr(0, name.find('['));
  if (list != name && find_key(list)) {
    throw Error(
        fmt::format("there is no {}: numbers of a list count from 1, as in {}[1]", name, list));
  }
  const std::string near = closest(names, name);
  if (homes.empty() && !near.empty()) homes.push_back(near);
  throw Error(fmt::format(
      "there is no key {}{}", in_quotes(name),
      homes.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(homes, " or "))));
}

}  // namespace

const Key& key_of_axis(const std::string& name) {
  const AxisTarget target = target_of(name);
  const Key* key = find_key(target.key);
  if (!key) refuse_key(name, target);
  if (std::ranges::count(swept_sections(), key->section) == 0) {
    throw Error(fmt::format("{} changes nothing that a sweep measures", name));
  }
  if (target.element > 0 && key->kind != ValueKind::matrix) {
    throw Error(fmt::format("{} is no list of numbers", target.key));
  }
  return *key;
}

SweepAxis make_axis(const std::optional<std::string>& name, std::vector<std::string> keys,
                    std::vector<std::vector<Value>> points, std::vector<std::string> labels) {
  if (keys.empty()) throw Error("an axis needs key = \"problem.heads\" or keys = [...]");
  for (const std::string& key : keys) static_cast<void>(key_of_axis(key));
  if (points.empty()) throw Error(fmt::format("the axis of {} has no values", keys[0]));
  for (const auto& point : points) {
    if (point.size() == keys.size()) continue;
    throw Error(fmt::format("a point of the axis of {} has {} value{}, and must have {}, one a key",
                            keys[0], point.size(), point.size() == 1 ? "" : "s", keys.size()));
  }
  if (!labels.empty() && labels.size() != points.size()) {
    throw Error(fmt::format("labels must be {} texts, one a value", points.size()));
  }
  SweepAxis out{name.value_or(""), std::move(keys), std::move(points), {}, {}, std::move(labels)};
  if (!name) {
    out.name = out.keys[0].substr(out.keys[0].find('.') + 1);
    std::erase(out.name, '[');
    std::erase(out.name, ']');
  }
  set_numbers(out, key_of_axis(out.keys[0]));
  if (out.labels.empty()) {
    for (const auto& point : out.points) out.labels.push_back(label_of(point));
  }
  return out;
}

SweepAxis make_axis(const std::string& key, const std::vector<Value>& values) {
  std::vector<std::vector<Value>> points;
  for (const Value& value : values) points.push_back({value});
  return make_axis({}, {key}, std::move(points));
}

}  // namespace headflow
