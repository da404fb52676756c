#include "io/toml_value.h"

#include <fstream>
#include <sstream>

namespace headflow {
namespace {

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

/// A list of texts; false otherwise, and of an empty list, which is one of numbers.
bool to_names(const toml::array& array, Value& out) {
  std::vector<std::string> names;
  for (const toml::node& node : array) {
    const auto* name = node.as_string();
    if (!name) return false;
    names.push_back(name->get());
  }
  if (names.empty()) return false;
  out = names;
  return true;
}

}  // namespace

toml::table parse_toml(const std::string& path, std::string* text) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  if (!in || !(content << in.rdbuf())) {
    throw FileError(path, "cannot be read (does it exist, and may you read it?)");
  }
  if (text) *text = content.str();
  try {
    return toml::parse(content.str(), path);
  } catch (const toml::parse_error& e) {
    throw Error(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()));
  }
}

std::string place(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

std::string node_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& n) { out << n; });
  return out.str();
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
  } else if (const auto* array = node.as_array(); array && to_names(*array, out)) {
    return true;
  } else if (array) {
    Matrix matrix;
    if (!to_matrix(*array, matrix)) return false;
    out = matrix;
  } else {
    return false;
  }
  return true;
}

}  // namespace headflow
