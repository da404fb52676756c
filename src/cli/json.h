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

/// A number, or as many lists in each other as the block has axes.
inline nlohmann::ordered_json to_json(const Blocks& blocks, const BlockLayout::Entry& entry) {
  const auto values = blocks[entry.info.name];
  if (entry.shape.empty()) return values[0];
  if (entry.shape.size() == 1) return std::vector<double>(values.begin(), values.end());
  const Eigen::Index rows = entry.shape[0];
  return to_json(Matrix(Eigen::Map<const Matrix>(values.data(), rows, entry.size / rows)));
}

inline nlohmann::ordered_json to_json(const Point& point) {
  nlohmann::ordered_json out = {{"m", to_json(point.m)}, {"R", to_json(point.R)}};
  for (const BlockLayout::Entry& e : point.blocks.entries()) {
    out[e.info.name] = to_json(point.blocks, e);
  }
  return out;
}

}  // namespace headflow::cli
