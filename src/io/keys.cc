#include "io/keys.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/error.h"
#include "core/suggest.h"
#include "io/parse_numbers.h"

namespace headflow {
namespace {

std::string number_text(double x) {
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}

std::string row_text(const Matrix& value, Eigen::Index row) {
  std::string text;
  for (const double x : value.row(row)) text += (text.empty() ? "" : ", ") + number_text(x);
  return "[" + text + "]";
}

[[noreturn]] void wrong_kind(const Key& key, const Value& value, std::string_view kind) {
  throw OptionError(key.full_name(), shortened(toml_text(value)), fmt::format("must be {}", kind));
}

std::int64_t as_integer(const Key& key, const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* x = std::get_if<double>(&value)) {
    if (*x == std::floor(*x) && std::abs(*x) < 0x1p62) return static_cast<std::int64_t>(*x);
  }
  wrong_kind(key, value, "an integer");
}

double as_number(const Key& key, const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  const auto* x = std::get_if<double>(&value);
  if (x && std::isfinite(*x)) return *x;
  wrong_kind(key, value, x ? "a finite number" : "a number");
}

Matrix as_matrix(const Key& key, const Value& value) {
  if (const auto* m = std::get_if<Matrix>(&value)) {
    if (m->size() == 0) wrong_kind(key, value, "one number or more, not an empty list");
    if (!m->allFinite()) wrong_kind(key, value, "finite numbers");
    return *m;
  }
  if (std::holds_alternative<bool>(value) || std::holds_alternative<std::string>(value)) {
    wrong_kind(key, value,
               "numbers: 1.0, [1.0, 2.0] or [[1.0, 2.0], [3.0, 4.0]]; on the command line 1,2;3,4, "
               "separated by commas, rows by semicolons");
  }
  return Matrix::Constant(1, 1, as_number(key, value));
}

/// What is no number stays a text, for the message.
Value parse_text(ValueKind kind, const std::string& text) {
  if (kind == ValueKind::text) return text;
  if (kind == ValueKind::matrix) {
    if (auto matrix = parse_matrix(text)) return *std::move(matrix);
    return text;
  }
  if (const auto i = parse_integer(text); i && kind == ValueKind::integer) return *i;
  if (const auto x = parse_number(text)) return *x;
  return text;
}

}  // namespace

std::string toml_text(const Value& value) {
  struct Visitor {
    std::string operator()(std::int64_t i) const { return fmt::format("{}", i); }
    std::string operator()(double x) const { return number_text(x); }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const std::string& s) const {
      std::string text = "\"";
      for (const char c : s) {
        if (c == '"' || c == '\\') text += '\\';
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          text += fmt::format("\\u{:04X}", static_cast<int>(c));
        } else {
          text += c;
        }
      }
      return text + "\"";
    }
    std::string operator()(const Matrix& m) const {
      if (m.size() == 1) return number_text(m(0, 0));
      if (m.rows() == 1) return row_text(m, 0);
      std::string text;
      for (Eigen::Index i = 0; i < m.rows(); ++i) text += (i ? ", " : "") + row_text(m, i);
      return "[" + text + "]";
    }
    std::string operator()(const std::vector<std::string>& names) const {
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : ", ") + (*this)(name);
      return "[" + text + "]";
    }
  };
  return std::visit(Visitor{}, value);
}

std::string Key::flag() const {
  std::string text = "--" + name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

void Keys::insert(Key key) { keys_.push_back(std::move(key)); }

void Keys::add(const std::string& section, const std::string& name, std::string& target,
               const std::string& help) {
  Key key{section, name, help, ValueKind::text, {}, [&target] { return toml_text(target); }};
  key.set = [&target, key](const Value& value) {
    if (!std::holds_alternative<std::string>(value)) wrong_kind(key, value, "text in quotes");
    target = std::get<std::string>(value);
  };
  insert(std::move(key));
}

void Keys::add_text_or_number(const std::string& section, const std::string& name,
                              std::string& target, const std::string& help) {
  Key key{section, name, help, ValueKind::text, {}, [&target] { return toml_text(target); }};
  key.set = [&target, key](const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    target = text ? *text : fmt::format("{}", as_number(key, value));
  };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, int& target,
               const std::string& help) {
  Key key{
      section, name, help, ValueKind::integer, {}, [&target] { return fmt::format("{}", target); }};
  key.set = [&target, key](const Value& value) {
    const std::int64_t i = as_integer(key, value);
    if (i < std::numeric_limits<int>::min() || i > std::numeric_limits<int>::max()) {
      wrong_kind(key, value, "an integer of at most nine digits");
    }
    target = static_cast<int>(i);
  };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, std::int64_t& target,
               const std::string& help) {
  Key key{
      section, name, help, ValueKind::integer, {}, [&target] { return fmt::format("{}", target); }};
  key.set = [&target, key](const Value& value) { target = as_integer(key, value); };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, std::uint64_t& target,
               const std::string& help) {
  Key key{
      section, name, help, ValueKind::integer, {}, [&target] { return fmt::format("{}", target); }};
  key.set = [&target, key](const Value& value) {
    const std::int64_t i = as_integer(key, value);
    if (i < 0) wrong_kind(key, value, "an integer that is not negative");
    target = static_cast<std::uint64_t>(i);
  };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, double& target,
               const std::string& help) {
  Key key{section, name, help, ValueKind::number, {}, [&target] { return number_text(target); }};
  key.set = [&target, key](const Value& value) { target = as_number(key, value); };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, std::optional<double>& target,
               const std::string& help) {
  Key key{section,           name, help,
          ValueKind::number, {},   [&target] { return target ? number_text(*target) : ""; }};
  key.set = [&target, key](const Value& value) { target = as_number(key, value); };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, std::optional<Matrix>& target,
               const std::string& help) {
  Key key{section,           name, help,
          ValueKind::matrix, {},   [&target] { return target ? toml_text(*target) : ""; }};
  key.set = [&target, key](const Value& value) { target = as_matrix(key, value); };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name, const std::string& entry,
               std::map<std::string, Matrix, std::less<>>& target, const std::string& help) {
  Key key{section, name, help, ValueKind::matrix, {}, [&target, entry] {
            const auto it = target.find(entry);
            return it == target.end() ? "" : toml_text(it->second);
          }};
  key.set = [&target, entry, key](const Value& value) { target[entry] = as_matrix(key, value); };
  insert(std::move(key));
}

void Keys::add(const std::string& section, const std::string& name,
               std::optional<std::vector<std::string>>& target, const std::string& help,
               std::vector<std::string> offered) {
  add_choices(
      section, name, help, [&target] { return target.value_or(std::vector<std::string>{}); },
      [&target](const std::vector<std::string>& names) { target = names; }, std::move(offered));
  keys_.back().show = [&target] { return target ? toml_text(*target) : ""; };
}

void Keys::add_choice(const std::string& section, const std::string& name, const std::string& help,
                      const std::function<std::string_view()>& get,
                      const std::function<void(const std::string&)>& set,
                      std::vector<std::string> choices) {
  Key key{section,         name, help,
          ValueKind::text, {},   [get] { return toml_text(std::string(get())); }};
  key.set = [set, key](const Value& value) {
    if (!std::holds_alternative<std::string>(value)) wrong_kind(key, value, "text in quotes");
    set(std::get<std::string>(value));
  };
  key.choices = std::move(choices);
  insert(std::move(key));
}

void Keys::add_choices(const std::string& section, const std::string& name, const std::string& help,
                       const std::function<std::vector<std::string>()>& get,
                       const std::function<void(const std::vector<std::string>&)>& set,
                       std::vector<std::string> choices) {
  Key key{section, name, help, ValueKind::text, {}, [get] { return toml_text(get()); }};
  key.set = [set, key](const Value& value) {
    if (const auto* names = std::get_if<std::vector<std::string>>(&value)) return set(*names);
    if (!std::holds_alternative<std::string>(value)) wrong_kind(key, value, "names in quotes");
    std::vector<std::string> parts;
    std::stringstream names(std::get<std::string>(value));
    for (std::string one; std::getline(names, one, ',');) {
      const std::size_t first = one.find_first_not_of(' ');
      const std::size_t last = one.find_last_not_of(' ');
      parts.push_back(first == std::string::npos ? "" : one.substr(first, last - first + 1));
    }
    set(parts);
  };
  key.choices = std::move(choices);
  insert(std::move(key));
}

const Key* Keys::find(std::string_view full_name) const {
  const std::size_t dot = full_name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  return find(full_name.substr(0, dot), full_name.substr(dot + 1));
}

const Key* Keys::find(std::string_view section, std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

void Keys::set(const Key& key, const Value& value, const std::string& origin) {
  origins_[key.full_name()] = origin;
  key.set(value);
}

void Keys::set_text(const Key& key, const std::string& text, const std::string& origin) {
  set(key, parse_text(key.kind, text), origin);
}

std::string Keys::origin(const std::string& full_name) const {
  const auto it = origins_.find(full_name);
  return it == origins_.end() ? "" : it->second;
}

std::string Keys::toml(const std::vector<std::string>& sections,
                       const std::vector<std::string>& left_out) const {
  std::string out;
  for (const std::string& section : sections) {
    std::string body;
    for (const Key& key : keys_) {
      if (key.section != section) continue;
      if (!left_out.empty() && std::ranges::count(left_out, key.full_name()) > 0) continue;
      if (const std::string value = key.show(); !value.empty()) {
        body += fmt::format("{} = {}\n", key.name, value);
      }
    }
    if (!body.empty()) out += fmt::format("{}[{}]\n{}", out.empty() ? "" : "\n", section, body);
  }
  return out;
}

}  // namespace headflow
