#pragma once

// The checksum of a result file: of all its variables, in alphabetical order. A variable's is that
// of its name, its shape and its values, where numbers of every type count as float64
// (docs/result_format.md).

#include <fmt/format.h>

#include <concepts>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include "core/checksum.h"

namespace headflow {

class ContentChecksum {
 public:
  /// A variable of numbers or of texts.
  template <std::ranges::input_range Values>
  void add(const std::string& name, const std::vector<std::size_t>& shape, const Values& values) {
    Checksum sum;
    sum.add(std::string_view(name));
    for (const std::size_t n : shape) sum.add(std::uint64_t{n});
    for (const auto& value : values) {
      if constexpr (std::convertible_to<decltype(value), std::string_view>) {
        sum.add(std::string_view(value));
      } else {
        const auto number = static_cast<double>(value);
        sum.add(&number, sizeof number);
      }
    }
    variables_[name] = sum.value();
  }

  std::string text() const {
    Checksum all;
    for (const auto& [name, sum] : variables_) all.add(sum);
    return fmt::format("fnv1a-64 {:016x}", all.value());
  }

 private:
  std::map<std::string, std::uint64_t> variables_;
};

}  // namespace headflow
