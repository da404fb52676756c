#pragma once

#include <cstddef>

namespace headflow {

/// Samples that share one call of the vectorised functions, one per vector lane, whatever the
/// machine's vector width. An array written [a][b] holds a*b groups of kLanes numbers, aligned to
/// 64 bytes.
inline constexpr int kLanes = 8;

/// Group number `index` of such an array.
template <class T>
constexpr T* lanes(T* base, std::ptrdiff_t index) {
  return base + index * kLanes;
}

}  // namespace headflow
