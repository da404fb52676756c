#pragma once

// Means with their errors, and lines through points that have errors.

#include <cmath>
#include <span>
#include <vector>

namespace headflow {

struct Measured {
  double value = 0, error = 0;
};

/// The mean over independent numbers and its standard error.
inline Measured mean_of(std::span<const double> x) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, square = 0;
  for (const double y : x) mean += y / n;
  for (const double y : x) square += (y - mean) * (y - mean);
  return {mean, std::sqrt(square / (n - 1) / n)};
}

/// The logarithm of the root of a mean of squares.
inline Measured log_rms(std::span<const double> squares) {
  const Measured mean = mean_of(squares);
  return {0.5 * std::log(mean.value), 0.5 * mean.error / mean.value};
}

/// The slope of a line through points by least squares, and its standard error from their scatter
/// about it: unknown (NaN) if there are but two.
Measured slope_of(const std::vector<double>& x, const std::vector<double>& y);

/// The slope of a line through points with errors, and its error: what they give, and more if the
/// points scatter more than they say.
Measured slope_of(std::span<const double> x, std::span<const Measured> y);

}  // namespace headflow
