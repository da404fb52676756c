#include "study/keys.h"

#include <algorithm>

namespace headflow {
namespace {

std::string dashed(std::string text) {
  std::ranges::replace(text, '_', '-');
  return text;
}

}  // namespace

std::string Key::flag() const { return "--" + dashed(full_name()); }
std::string Key::short_flag() const { return "--" + dashed(name); }

const Key* find_key(std::string_view full_name) {
  for (const Key& key : keys()) {
    if (key.full_name() == full_name) return &key;
  }
  return nullptr;
}

const Names& sections() {
  static const Names all = [] {
    Names out;
    for (const Key& key : keys()) {
      if (std::ranges::count(out, key.section) == 0) out.push_back(key.section);
    }
    return out;
  }();
  return all;
}

std::vector<const Key*> keys_of(const Names& chosen) {
  std::vector<const Key*> out;
  for (const std::string& name : chosen) {
    const bool beginning = name.ends_with('*');
    for (const Key& key : keys()) {
      const bool begins = beginning && key.full_name().starts_with(name.substr(0, name.size() - 1));
      if (key.section == name || key.full_name() == name || begins) out.push_back(&key);
    }
  }
  return out;
}

std::string Origins::of(std::string_view full_name) const {
  const auto it = origins_.find(full_name);
  return it == origins_.end() ? "" : it->second;
}

std::string config_text(const Config& config, const Names& of_sections, const Names& left_out) {
  std::string out;
  for (const std::string& section : of_sections) {
    std::string body;
    for (const Key& key : keys()) {
      if (key.section != section || std::ranges::count(left_out, key.full_name()) > 0) continue;
      if (const auto value = key.get(config)) body += key.name + " = " + value_text(*value) + "\n";
    }
    if (!body.empty()) out += (out.empty() ? "" : "\n") + ("[" + section + "]\n") + body;
  }
  return out;
}

}  // namespace headflow
