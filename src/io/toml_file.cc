// A TOML file into the table of keys.

#include <algorithm>

#include "core/suggest.h"
#include "io/toml_value.h"

namespace headflow {

void Keys::read_file(const std::string& path, const std::vector<std::string>& left_out) {
  read_keys(*this, parse_toml(path), path, left_out);
}

void read_keys(Keys& keys, const toml::table& document, const std::string& path,
               const std::vector<std::string>& left_out) {
  std::vector<std::string> sections;
  for (const Key& key : keys.all()) {
    if (std::find(sections.begin(), sections.end(), key.section) == sections.end()) {
      sections.push_back(key.section);
    }
  }
  const auto hint = [](const std::string& name) {
    return name.empty() ? std::string() : fmt::format(" (did you mean {}?)", in_quotes(name));
  };
  for (const auto& [section_key, section_node] : document) {
    const std::string section(section_key.str());
    if (std::find(left_out.begin(), left_out.end(), section) != left_out.end()) continue;
    const toml::table* table = section_node.as_table();
    if (!table || std::find(sections.begin(), sections.end(), section) == sections.end()) {
      std::string home;  // a key outside of its table
      for (const Key& key : keys.all()) {
        if (key.name == section) home = key.section;
      }
      const std::string advice = !table && !home.empty()
                                     ? fmt::format(" (it belongs in the table [{}])", home)
                                     : hint(closest(sections, section));
      throw Error(fmt::format("{}: unknown {} {}{}", place(path, section_node),
                              table ? "table" : "key", in_quotes(section), advice));
    }
    for (const auto& [name_key, node] : *table) {
      const std::string name(name_key.str());
      const Key* key = keys.find(section + "." + name);
      if (!key) {
        std::vector<std::string> names;
        for (const Key& k : keys.all()) {
          if (k.section == section) names.push_back(k.name);
        }
        throw Error(fmt::format("{}: unknown key {} in [{}]{}", place(path, node), in_quotes(name),
                                section, hint(closest(names, name))));
      }
      Value value;
      if (!to_value(node, value)) {
        throw Error(fmt::format(
            "{}: {} = {}: must be {}", place(path, node), key->full_name(), node_text(node),
            key->kind == ValueKind::matrix ? "numbers in a list, or rows of equal length"
                                           : "a single value"));
      }
      try {
        keys.set(*key, value, place(path, node));
      } catch (const OptionError& e) {
        throw Error(fmt::format("{}: {}", place(path, node), e.what()));
      }
    }
  }
}

}  // namespace headflow
