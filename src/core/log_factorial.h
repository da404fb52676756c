#pragma once

#include <cmath>

namespace headflow {

/// log n! for n >= 0, to 1e-14 (1 + log n!): Stirling's series, shifted to where it converges.
/// std::lgamma is no choice: it writes the global variable signgam, a race between threads.
inline double log_factorial(double n) {
  double product = 1.0, x = n + 1.0;
  for (; x < 12.0; x += 1.0) product *= x;
  const double y = 1.0 / (x * x);
  const double series =
      (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / x;
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return (x - 0.5) * std::log(x) - x + kHalfLogTwoPi + series - std::log(product);
}

}  // namespace headflow
