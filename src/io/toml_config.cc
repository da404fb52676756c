// A TOML file into a configuration.

#include "io/toml_config.h"

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "io/toml_value.h"

namespace headflow {
namespace {

std::string hint(const std::string& name) {
  return name.empty() ? std::string() : fmt::format(" (did you mean {}?)", in_quotes(name));
}

[[noreturn]] void unknown_section(const std::string& path, const std::string& section,
                                  const toml::node& node) {
  std::string home;  // a key outside of its table
  for (const Key& key : keys()) {
    if (key.name == section) home = key.section;
  }
  const bool table = node.is_table();
  const std::string advice = !table && !home.empty()
                                 ? fmt::format(" (it belongs in the table [{}])", home)
                                 : hint(closest(sections(), section));
  throw Error(fmt::format("{}: unknown {} {}{}", place(path, node), table ? "table" : "key",
                          in_quotes(section), advice));
}

const Key& known_key(const std::string& path, const std::string& section, const std::string& name,
                     const toml::node& node) {
  if (const Key* key = find_key(section + "." + name)) return *key;
  Names names;
  for (const Key& key : keys()) {
    if (key.section == section) names.push_back(key.name);
  }
  throw Error(fmt::format("{}: unknown key {} in [{}]{}", place(path, node), in_quotes(name),
                          section, hint(closest(names, name))));
}

}  // namespace

void read_config(const std::string& path, const Names& left_out, Config& config, Origins& origins) {
  read_config(parse_toml(path), path, left_out, config, origins);
}

void read_config(const toml::table& document, const std::string& path, const Names& left_out,
                 Config& config, Origins& origins) {
  for (const auto& [section_key, section_node] : document) {
    const std::string section(section_key.str());
    if (std::ranges::count(left_out, section) > 0) continue;
    const toml::table* table = section_node.as_table();
    if (!table || std::ranges::count(sections(), section) == 0) {
      unknown_section(path, section, section_node);
    }
    for (const auto& [name, node] : *table) {
      const Key& key = known_key(path, section, std::string(name.str()), node);
      Value value;
      if (!to_value(node, value)) {
        throw Error(fmt::format(
            "{}: {} = {}: must be {}", place(path, node), key.full_name(), node_text(node),
            key.kind == ValueKind::matrix ? "numbers in a list, or rows of equal length"
                                          : "a single value"));
      }
      try {
        key.set(config, value);
      } catch (const OptionError& e) {
        throw Error(fmt::format("{}: {}", place(path, node), e.what()));
      }
      origins.set(key.full_name(), place(path, node));
    }
  }
}

}  // namespace headflow
