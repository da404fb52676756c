#include "io/toml_value.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/suggest.h"

namespace headflow {
namespace {

constexpr std::size_t kLargestFile = std::size_t{16} << 20;
constexpr int kDeepest = 16;  // parts of a name; ours have two

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

/// The whole file. It may be a pipe, as in `headflow loss <(...)`.
std::string text_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw FileError(path, "cannot be read: it is a folder; give a configuration file");
  }
  std::ifstream in(path, std::ios::binary);
  std::string content;
  std::vector<char> block(1 << 16);
  while (in && content.size() <= kLargestFile) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    content.append(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (content.size() > kLargestFile) {
    throw FileError(
        path, fmt::format("is larger than {} MiB, which no configuration is", kLargestFile >> 20));
  }
  if (!in.eof()) throw FileError(path, "cannot be read (does it exist, and may you read it?)");
  return content;
}

/// Where a text in quotes that begins at `at` ends.
std::size_t after_quotes(const std::string& text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool many_lines = text.compare(at, 3, three) == 0;
  const std::string close = many_lines ? three : std::string(1, quote);
  for (at += close.size(); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text.compare(at, close.size(), close) == 0 || (!many_lines && text[at] == '\n')) {
      return at + close.size();
    }
  }
  return at;
}

/// Tables in tables in tables: a parser that calls itself for each of them runs out of stack.
/// Counts the dots of each name, outside of comments and texts in quotes; no number has two.
void check_depth(const std::string& path, const std::string& text) {
  int line = 1, dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      const std::size_t end = after_quotes(text, at);
      line += static_cast<int>(
          std::count(text.begin() + std::ptrdiff_t(at), text.begin() + std::ptrdiff_t(end), '\n'));
      at = end;
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++dots >= kDeepest) {
      throw Error(fmt::format("{}:{}: a name of more than {} parts", path, line, kDeepest));
    }
    if (std::string_view(",=[]{}\n").find(c) != std::string_view::npos) dots = 0;
    line += c == '\n';
    ++at;
  }
}

}  // namespace

toml::table parse_toml(const std::string& path, std::string* text) {
  const std::string content = text_of(path);
  if (text) *text = content;
  check_depth(path, content);
  try {
    return toml::parse(content, path);
  } catch (const toml::parse_error& e) {
    throw Error(fmt::format("{}:{}: {}", path, e.source().begin.line, shortened(e.description())));
  }
}

std::string place(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

std::string node_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& n) { out << n; });
  return shortened(out.str());
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
