#include "sweep/what_differs.h"

#include <map>
#include <vector>

#include "io/toml_value.h"

namespace headflow {
namespace {

constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kLongest = 60;

struct Thing {
  std::string value;
  std::size_t values = 0;  // of an axis; 0: no axis
};

/// Keys by full name, and axes by theirs.
std::map<std::string, Thing> things_of(const std::string& text) {
  std::map<std::string, Thing> out;
  const toml::table document = toml::parse(text);
  for (const auto& [section, node] : document) {
    const toml::table* table = node.as_table();
    if (!table) continue;
    for (const auto& [name, value] : *table) {
      const std::string full = fmt::format("{}.{}", section.str(), name.str());
      if (full != "sweep.axis" || !value.is_array()) {
        out[full] = {node_text(value)};
        continue;
      }
      for (const toml::node& axis : *value.as_array()) {
        if (!axis.is_table()) continue;
        const toml::array* values = (*axis.as_table())["values"].as_array();
        out[fmt::format("axis {}", (*axis.as_table())["name"].value_or(std::string()))] = {
            node_text(axis), values ? values->size() : 0};
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

std::string what_differs(const std::string& now, const std::string& before) {
  std::map<std::string, Thing> here, there;
  try {
    here = things_of(now);
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
