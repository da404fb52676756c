#include "core/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace headflow {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

/// Without hyphens and underscores, which people put anywhere.
std::string letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '-' && c != '_') out += c;
  }
  return out;
}

}  // namespace

std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  const std::size_t end = longest / 5;
  return fmt::format("{} ... {}", text.substr(0, longest - end), text.substr(text.size() - end));
}

std::string in_quotes(std::string_view text) {
  std::string shown = shortened(text);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return fmt::format("\"{}\"", shown);
}

std::string closest(const std::vector<std::string>& names, std::string_view misspelt) {
  constexpr std::size_t kLongestName = 100;
  if (misspelt.size() > kLongestName) return "";  // close to nothing, and costly to compare
  std::string best;
  std::size_t distance = std::max<std::size_t>(2, misspelt.size() / 3) + 1;
  for (const std::string& name : names) {
    if (const std::size_t d = edit_distance(letters(name), letters(misspelt)); d < distance) {
      distance = d;
      best = name;
    }
  }
  return best;
}

std::string one_of(const std::vector<std::string>& names, std::string_view given) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + in_quotes(name);
  const std::string hint = closest(names, given);
  return fmt::format("must be one of {}{}", list,
                     hint.empty() ? "" : fmt::format(" (did you mean {}?)", in_quotes(hint)));
}

}  // namespace headflow
