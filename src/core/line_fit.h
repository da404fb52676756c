#pragma once

#include <cmath>
#include <span>

namespace headflow {

/// Least squares, y = offset + slope x.
struct Line {
  double slope = 0, offset = 0;
  double error = 0;  ///< standard error of the slope, from the scatter about the line
};

inline Line fit_line(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double mx = 0, my = 0, xx = 0, xy = 0, rest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
  }
  const double slope = xy / xx;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - my - slope * (x[i] - mx);
    rest += off * off;
  }
  return {slope, my - slope * mx, n > 2 ? std::sqrt(rest / (n - 2) / xx) : 0.0};
}

}  // namespace headflow
