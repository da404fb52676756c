#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "model/point.h"

namespace headflow::cli {

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
