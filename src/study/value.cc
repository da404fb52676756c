#include "study/value.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "study/parse_numbers.h"

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

struct Writer {
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
  std::string operator()(const Names& names) const {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + (*this)(name);
    return "[" + text + "]";
  }
};

/// "a, b" -> a, b.
Names separated(const std::string& text) {
  Names out;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, ',');) {
    const std::size_t first = one.find_first_not_of(' '), last = one.find_last_not_of(' ');
    out.push_back(first == std::string::npos ? "" : one.substr(first, last - first + 1));
  }
  return out;
}

}  // namespace

std::string value_text(const Value& value) { return std::visit(Writer{}, value); }

Value parse_value(ValueKind kind, const std::string& text) {
  switch (kind) {
    case ValueKind::text: break;
    case ValueKind::names: return separated(text);
    case ValueKind::matrix:
      if (auto matrix = parse_matrix(text)) return *std::move(matrix);
      break;
    case ValueKind::integer:
      if (const auto i = parse_integer(text)) return *i;
      [[fallthrough]];
    case ValueKind::number:
      if (const auto x = parse_number(text)) return *x;
  }
  return text;
}

std::optional<double> to_number(const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* x = std::get_if<double>(&value)) return *x;
  return std::nullopt;
}

bool same(const Value& a, const Value& b) { return value_text(a) == value_text(b); }

}  // namespace headflow
