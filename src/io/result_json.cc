#include "io/result_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "study/result_header.h"

namespace headflow {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x, bool whole) {
  if (!std::isfinite(x)) return nullptr;
  if (whole) return static_cast<std::int64_t>(x);
  return x;
}

/// Entries from `at` on, along the dimensions from number d on.
template <class Entry>
Json nested(const Dimensions& dimensions, std::size_t d, std::size_t& at, const Entry& entry) {
  if (d == dimensions.size()) return entry(at++);
  Json out = Json::array();
  for (std::size_t i = 0; i < dimensions[d].size; ++i) {
    out.push_back(nested(dimensions, d + 1, at, entry));
  }
  return out;
}

Json values_json(const Quantity& q) {
  std::size_t at = 0;
  if (q.is_text()) return nested(q.dimensions, 0, at, [&](std::size_t i) { return q.texts[i]; });
  if (!q.integers.empty()) {
    return nested(q.dimensions, 0, at, [&](std::size_t i) { return q.integers[i]; });
  }
  return nested(q.dimensions, 0, at, [&](std::size_t i) { return number(q.values[i], q.whole); });
}

Json errors_json(const Quantity& q) {
  std::size_t at = 0;
  return nested(q.dimensions, 0, at, [&](std::size_t i) { return number(q.errors[i], false); });
}

/// The name of the list that a quantity is part of; empty if there is none.
std::string table_of(const Dataset& result, const Quantity& q) {
  for (const auto& [dimension, name] : result.tables) {
    if (!q.dimensions.empty() && q.dimensions[0].name == dimension) return name;
  }
  return "";
}

void put(Json& out, const std::string& table, const std::string& name, Json value) {
  if (table.empty()) {
    out[name] = std::move(value);
    return;
  }
  Json& rows = out[table];
  for (std::size_t i = 0; i < value.size(); ++i) rows[i][name] = std::move(value[i]);
}

Json attribute_json(const AttributeValue& value) {
  return std::visit(
      [](const auto& x) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>) {
          return number(x, false);
        } else {
          return x;
        }
      },
      value);
}

}  // namespace

std::string json_text(const Dataset& result) {
  Json out, kinds = Json::object();
  for (const auto& [dimension, name] : result.tables) out[name] = Json::array();
  for (const Quantity& q : result.quantities) {
    const std::string table = table_of(result, q);
    put(out, table, q.name, values_json(q));
    if (q.errors.empty()) continue;
    put(out, table, q.name_of_errors(), errors_json(q));
    for (const ErrorKind kind : q.error_kinds) kinds[q.name_of_errors()] = to_string(kind);
  }
  if (!kinds.empty()) out["error_kinds"] = kinds;
  for (const auto& [name, value] : result.attributes) out[name] = attribute_json(value);
  if (result.provenance.seed) out["seed"] = *result.provenance.seed;
  Json& provenance = out["provenance"];
  for (const auto& [name, value] : result_header(result)) provenance[name] = attribute_json(value);
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headflow
