#include "study/dataset.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

/// Entries at the last index of dimension number d.
template <class T>
std::vector<T> last_entries(const std::vector<T>& all, const Dimensions& dimensions,
                            std::size_t d) {
  const auto begin = dimensions.begin(), at = begin + static_cast<std::ptrdiff_t>(d);
  const std::size_t outer = size_of({begin, at}), inner = size_of({at + 1, dimensions.end()});
  std::vector<T> out;
  if (all.empty()) return out;
  for (std::size_t i = 0; i < outer; ++i) {
    const auto from =
        all.begin() + static_cast<std::ptrdiff_t>(((i + 1) * dimensions[d].size - 1) * inner);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(inner));
  }
  return out;
}

}  // namespace

std::size_t size_of(const Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), std::size_t{1},
                         [](std::size_t n, const Dimension& d) { return n * d.size; });
}

Quantity& Dataset::add(std::string name, std::string meaning, Dimensions dimensions,
                       std::vector<double> values) {
  Quantity q{std::move(name), std::move(meaning), std::move(dimensions), std::move(values)};
  if (q.values.size() != q.size()) {
    throw Error(fmt::format("{} has {} numbers, not {}", q.name, q.values.size(), q.size()));
  }
  return quantities.emplace_back(std::move(q));
}

Quantity& Dataset::add(std::string name, std::string meaning, double value) {
  return add(std::move(name), std::move(meaning), {}, {value});
}

Quantity& Dataset::add_integers(std::string name, std::string meaning, Dimensions dimensions,
                                std::vector<std::int64_t> integers) {
  Quantity q{std::move(name), std::move(meaning), std::move(dimensions), {}};
  if (integers.size() != q.size()) {
    throw Error(fmt::format("{} has {} integers, not {}", q.name, integers.size(), q.size()));
  }
  q.integers = std::move(integers);
  return quantities.emplace_back(std::move(q));
}

Quantity& Dataset::add_texts(std::string name, std::string meaning, Dimensions dimensions,
                             std::vector<std::string> texts) {
  Quantity q{std::move(name), std::move(meaning), std::move(dimensions), {}};
  if (texts.size() != q.size()) {
    throw Error(fmt::format("{} has {} texts, not {}", q.name, texts.size(), q.size()));
  }
  q.texts = std::move(texts);
  return quantities.emplace_back(std::move(q));
}

void Dataset::set(const std::string& name, AttributeValue value) {
  for (auto& [known, old] : attributes) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

const Quantity* Dataset::find(std::string_view name) const {
  const auto it = std::ranges::find(quantities, name, &Quantity::name);
  return it == quantities.end() ? nullptr : &*it;
}

const Quantity& Dataset::operator[](std::string_view name) const {
  if (const Quantity* found = find(name)) return *found;
  throw Error(fmt::format("there is no quantity {}", in_quotes(name)));
}

double Dataset::number(std::string_view name) const {
  const Quantity& q = (*this)[name];
  if (q.values.size() != 1) throw Error(fmt::format("{} is not one number", in_quotes(name)));
  return q.values[0];
}

double Dataset::error(std::string_view name) const {
  const Quantity& q = (*this)[name];
  return q.errors.size() == 1 ? q.errors[0] : std::nan("");
}

const AttributeValue* Dataset::attribute(std::string_view name) const {
  for (const auto& [known, value] : attributes) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::string Dataset::text(std::string_view name) const {
  const AttributeValue* value = attribute(name);
  const auto* text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? *text : "";
}

bool Dataset::flag(std::string_view name) const {
  const AttributeValue* value = attribute(name);
  const auto* flag = value ? std::get_if<bool>(value) : nullptr;
  return flag && *flag;
}

std::int64_t Dataset::count(std::string_view name) const {
  const AttributeValue* value = attribute(name);
  const auto* count = value ? std::get_if<std::int64_t>(value) : nullptr;
  return count ? *count : 0;
}

double Dataset::real(std::string_view name) const {
  const AttributeValue* value = attribute(name);
  const auto* real = value ? std::get_if<double>(value) : nullptr;
  return real ? *real : std::nan("");
}

Dataset Dataset::last(std::string_view dimension) const {
  Dataset out = *this;
  for (Quantity& q : out.quantities) {
    const auto at = std::ranges::find(q.dimensions, dimension, &Dimension::name);
    if (at == q.dimensions.end()) continue;
    const auto d = static_cast<std::size_t>(at - q.dimensions.begin());
    if (at->size == 0) throw Error(fmt::format("{} has no last entry", in_quotes(dimension)));
    q.values = last_entries(q.values, q.dimensions, d);
    q.errors = last_entries(q.errors, q.dimensions, d);
    q.texts = last_entries(q.texts, q.dimensions, d);
    q.integers = last_entries(q.integers, q.dimensions, d);
    q.dimensions.erase(at);
  }
  return out;
}

CountedDimension counted(std::string_view dimension) {
  struct Known {
    std::string_view name;
    CountedDimension counted;
  };
  static constexpr Known all[] = {{"attention_head", {1, "head"}},
                                  {"other_head", {1, "second head of a pair"}},
                                  {"feature", {1, "hidden direction"}},
                                  {"feature2", {1, "second hidden direction of a pair"}},
                                  {"token", {1, "token"}},
                                  {"run", {1, "independent run"}},
                                  {"removed", {0, "heads removed"}}};
  for (const Known& one : all) {
    if (one.name == dimension) return one.counted;
  }
  return {1, dimension};
}

}  // namespace headflow
