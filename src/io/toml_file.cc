// Keys::read_file: a TOML file into the table of keys.

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/suggest.h"
#include "io/keys.h"

namespace headflow {
namespace {

std::string place(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

std::string node_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& n) { out << n; });
  return out.str();
}

/// Numbers, lists of numbers and lists of equally long lists of numbers; false otherwise.
bool to_matrix(const toml::array& array, Matrix& out) {
  const auto number = [](const toml::node& node, double& x) {
    if (const auto value = node.value<double>(); value && node.is_number()) {
      x = *value;
      return true;
    }
    return false;
  };
  const auto* first = array.empty() ? nullptr : array.get(0)->as_array();
  const std::size_t rows = first ? array.size() : 1;
  const std::size_t columns = first ? first->size() : array.size();
  out.resize(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
  for (std::size_t i = 0; i < rows; ++i) {
    const toml::array* row = first ? array.get(i)->as_array() : &array;
    if (!row || row->size() != columns) return false;
    for (std::size_t j = 0; j < columns; ++j) {
      if (!number(*row->get(j), out(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)))) {
        return false;
      }
    }
  }
  return true;
}

bool to_value(const toml::node& node, Value& out) {
  if (const auto* i = node.as_integer()) {
    out = i->get();
  } else if (const auto* x = node.as_floating_point()) {
    out = x->get();
  } else if (const auto* b = node.as_boolean()) {
    out = b->get();
  } else if (const auto* s = node.as_string()) {
    out = s->get();
  } else if (const auto* array = node.as_array()) {
    Matrix matrix;
    if (!to_matrix(*array, matrix)) return false;
    out = matrix;
  } else {
    return false;
  }
  return true;
}

}  // namespace

void Keys::read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  if (!in || !(content << in.rdbuf())) {
    throw FileError(path, "cannot be read (does it exist, and may you read it?)");
  }
  toml::table document;
  try {
    document = toml::parse(content.str(), path);
  } catch (const toml::parse_error& e) {
    throw Error(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()));
  }

  std::vector<std::string> sections;
  for (const Key& key : keys_) {
    if (std::find(sections.begin(), sections.end(), key.section) == sections.end()) {
      sections.push_back(key.section);
    }
  }
  const auto hint = [](const std::string& name) {
    return name.empty() ? std::string() : fmt::format(" (did you mean {}?)", in_quotes(name));
  };
  for (const auto& [section_key, section_node] : document) {
    const std::string section(section_key.str());
    const toml::table* table = section_node.as_table();
    if (!table || std::find(sections.begin(), sections.end(), section) == sections.end()) {
      std::string home;  // a key outside of its table
      for (const Key& key : keys_) {
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
      const Key* key = find(section, name);
      if (!key) {
        std::vector<std::string> names;
        for (const Key& k : keys_) {
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
        set(*key, value, place(path, node));
      } catch (const OptionError& e) {
        throw Error(fmt::format("{}: {}", place(path, node), e.what()));
      }
    }
  }
}

}  // namespace headflow
