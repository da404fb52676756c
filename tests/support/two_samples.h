#pragma once

// Are two samples of vectors from the same law? Two-sample Kolmogorov-Smirnov tests of every
// coordinate and of random projections, with Bonferroni's correction.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/matrix.h"

namespace headflow::testing {

/// Asymptotic p-value of the two-sample Kolmogorov-Smirnov test.
inline double kolmogorov_smirnov(Vector a, Vector b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double largest = 0;
  Eigen::Index i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
    largest =
        std::max(largest, std::abs(static_cast<double>(i) / na - static_cast<double>(j) / nb));
  }
  const double n = static_cast<double>(a.size()) * static_cast<double>(b.size()) /
                   static_cast<double>(a.size() + b.size());
  const double t = std::sqrt(n) * largest;
  if (t < 0.3) return 1.0;
  double p = 0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 ? 2 : -2) * std::exp(-2.0 * k * k * t * t);
  return std::clamp(p, 0.0, 1.0);
}

struct SameLaw {
  int tests = 0;
  double smallest_p = 1;
  /// Times the number of tests: below alpha with probability at most alpha if the laws are equal.
  double corrected_p() const { return std::min(1.0, smallest_p * tests); }
};

/// Rows are draws.
inline SameLaw compare_laws(const Matrix& a, const Matrix& b, int projections = 20) {
  SameLaw out;
  const auto test = [&](const Vector& x, const Vector& y) {
    ++out.tests;
    out.smallest_p = std::min(out.smallest_p, kolmogorov_smirnov(x, y));
  };
  Vector scale(a.cols());
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    scale[j] = std::sqrt((a.col(j).array() - a.col(j).mean()).square().mean());
    if (scale[j] > 0) test(a.col(j), b.col(j));
  }
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  for (int k = 0; k < projections; ++k) {
    Vector direction(a.cols());
    for (Eigen::Index j = 0; j < a.cols(); ++j) {
      direction[j] = scale[j] > 0 ? normal(generator) / scale[j] : 0.0;
    }
    test(a * direction, b * direction);
  }
  return out;
}

}  // namespace headflow::testing
