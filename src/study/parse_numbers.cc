#include "study/parse_numbers.h"

#include <charconv>
#include <vector>

namespace headflow {
namespace {

constexpr std::string_view kSpaces = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

/// from_chars knows no leading plus.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number out{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, out);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return out;
}

using Row = std::vector<double>;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// "1, 2": at least one number.
std::optional<Row> parse_row(std::string_view text) {
  Row out;
  for (const std::string_view part : split(text, ',')) {
    const auto x = parse_number(part);
    if (!x) return std::nullopt;
    out.push_back(*x);
  }
  return out;
}

/// What is inside a pair of brackets that encloses the whole text.
std::optional<std::string_view> inside(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  return trimmed(text.substr(1, text.size() - 2));
}

/// "[1, 2], [3, 4]".
std::optional<std::vector<Row>> parse_bracketed_rows(std::string_view text) {
  std::vector<Row> rows;
  for (;;) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const auto row = inside(text.substr(0, close + 1));
    const auto numbers = row ? parse_row(*row) : std::nullopt;
    if (!numbers) return std::nullopt;
    rows.push_back(*numbers);
    text = trimmed(text.substr(close + 1));
    if (text.empty()) return rows;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

std::optional<std::vector<Row>> parse_rows(std::string_view text) {
  if (const auto body = inside(text)) {
    if (body->starts_with('[')) return parse_bracketed_rows(*body);
    text = *body;
    if (text.find(';') != std::string_view::npos) return std::nullopt;
  }
  std::vector<Row> rows;
  for (const std::string_view part : split(text, ';')) {
    const auto row = parse_row(part);
    if (!row) return std::nullopt;
    rows.push_back(*row);
  }
  return rows;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  return whole<double>(without_plus(text));  // beyond the range of a double it is none, either
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return whole<std::int64_t>(without_plus(trimmed(text)));
}

std::optional<Matrix> parse_matrix(std::string_view text) {
  const auto rows = parse_rows(text);
  if (!rows) return std::nullopt;
  const std::size_t columns = rows->front().size();
  Matrix out(static_cast<Eigen::Index>(rows->size()), static_cast<Eigen::Index>(columns));
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if ((*rows)[i].size() != columns) return std::nullopt;
    for (std::size_t j = 0; j < columns; ++j) {
      out(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = (*rows)[i][j];
    }
  }
  return out;
}

}  // namespace headflow
