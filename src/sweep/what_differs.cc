#include "sweep/what_differs.h"

#include <algorithm>
#include <map>
#include <vector>

#include "io/toml_value.h"
#include "study/keys.h"

namespace headflow {
namespace {

constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kLongest = 60;

struct Thing {
  std::string value;
  std::size_t values = 0;  // of an axis; 0: no axis
};
using Things = std::map<std::string, Thing>;  // keys by full name, and axes by theirs

/// Of a sweep.
Things things_of(const Config& base, const SweepPlan& plan) {
  Things out;
  const Names replaced = plan.replaced_keys();
  for (const Key& key : keys()) {
    const auto value = key.get(base);
    if (!value || std::ranges::count(swept_sections(), key.section) == 0) continue;
    if (std::ranges::count(replaced, key.full_name()) > 0) continue;
    out[key.full_name()] = {value_text(*value)};
  }
  out["sweep.measure"] = {value_text(names_of(plan.measures))};
  for (const SweepAxis& axis : plan.axes) {
    std::string text = value_text(axis.keys);
    for (const auto& point : axis.points) {
      for (const Value& value : point) text += " " + value_text(value);
    }
    out["axis " + axis.name] = {text, axis.points.size()};
  }
  return out;
}

std::string text_of(const toml::node& node) {
  Value value;
  return to_value(node, value) ? value_text(value) : node_text(node);
}

/// Of an axis as `SweepPlan::toml` writes it.
Thing axis_of(const toml::table& axis) {
  std::string text;
  if (const toml::node* keys = axis.get("keys")) text = text_of(*keys);
  const toml::array* values = axis["values"].as_array();
  if (!values) return {text, 0};
  for (const toml::node& point : *values) {
    const toml::array* together = point.as_array();
    if (!together) text += " " + text_of(point);
    if (!together) continue;
    for (const toml::node& value : *together) text += " " + text_of(value);
  }
  return {text, values->size()};
}

/// Of a recorded configuration. Throws toml::parse_error.
Things things_of(const std::string& recorded) {
  Things out;
  const toml::table document = toml::parse(recorded);
  for (const auto& [section, node] : document) {
    const toml::table* table = node.as_table();
    if (!table) continue;
    for (const auto& [name, value] : *table) {
      const std::string full = fmt::format("{}.{}", section.str(), name.str());
      if (full != "sweep.axis" || !value.is_array()) {
        out[full] = {text_of(value)};
        continue;
      }
      for (const toml::node& axis : *value.as_array()) {
        const toml::table* one = axis.as_table();
        if (one) out["axis " + (*one)["name"].value_or(std::string())] = axis_of(*one);
      }
    }
  }
  return out;
}

std::string brief(const std::string& text) {
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string difference(const std::string& name, const Thing* now, const Thing* before) {
  const bool axis = name.starts_with("axis ");
  if (!now) return fmt::format("no {} any more", name);
  if (!before)
    return axis ? fmt::format("{} is new", name)
                : fmt::format("{} = {} is new", name, brief(now->value));
  if (!axis) return fmt::format("{} = {}, was {}", name, brief(now->value), brief(before->value));
  if (now->values == before->values) return fmt::format("{} has other values", name);
  return fmt::format("{}: {} value{}, was {}", name, now->values, now->values == 1 ? "" : "s",
                     before->values);
}

}  // namespace

std::string what_differs(const Config& base, const SweepPlan& plan, const std::string& before) {
  const Things here = things_of(base, plan);
  Things there;
  try {
    there = things_of(before);
  } catch (const toml::parse_error&) {
    return "its configuration cannot be read";
  }
  std::vector<std::string> out;
  for (const auto& [name, thing] : here) {
    const auto old = there.find(name);
    if (old != there.end() && old->second.value == thing.value) continue;
    out.push_back(difference(name, &thing, old == there.end() ? nullptr : &old->second));
  }
  for (const auto& [name, thing] : there) {
    if (!here.contains(name)) out.push_back(difference(name, nullptr, &thing));
  }
  std::string text;
  for (std::size_t i = 0; i < out.size() && i < kMostNamed; ++i) {
    text += (i ? "; " : "") + out[i];
  }
  if (out.size() > kMostNamed) text += fmt::format("; and {} more", out.size() - kMostNamed);
  return text;
}

}  // namespace headflow
