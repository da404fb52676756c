#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "model/point.h"

namespace headflow::cli {

/// As it is printed. What is no UTF-8, such as odd file names, is replaced.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

inline nlohmann::ordered_json to_json(const Matrix& matrix) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : matrix.rowwise())
    rows.push_back(std::vector<double>(row.begin(), row.end()));
  return rows;
}

/// null if it is not known.
template <class T>
nlohmann::ordered_json to_json(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

inline nlohmann::ordered_json to_json(const Point& point) {
  return {{"m", to_json(point.m)},
          {"R", to_json(point.R)},
          {"b", std::vector<double>(point.b.begin(), point.b.end())},
          {"v", point.v}};
}

}  // namespace headflow::cli
