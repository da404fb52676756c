#include "verify/statistics.h"

#include <algorithm>
#include <boost/math/statistics/linear_regression.hpp>

namespace headflow {

Measured slope_of(const std::vector<double>& x, const std::vector<double>& y) {
  namespace statistics = boost::math::statistics;
  const auto [offset, slope] = statistics::simple_ordinary_least_squares(x, y);
  const auto n = static_cast<double>(x.size());
  double rest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - offset - slope * x[i];
    rest += off * off;
  }
  const double error = std::sqrt(rest / (n - 2) / (n * statistics::variance(x)));
  return {slope, n > 2 ? error : std::nan("")};
}

Measured slope_of(std::span<const double> x, std::span<const Measured> y) {
  double w = 0, wx = 0, wy = 0, xx = 0, xy = 0, chi = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (y[i].error * y[i].error);
    w += weight, wx += weight * x[i], wy += weight * y[i].value;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (y[i].error * y[i].error), dx = x[i] - wx / w;
    xx += weight * dx * dx, xy += weight * dx * (y[i].value - wy / w);
  }
  const double slope = xy / xx;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = y[i].value - wy / w - slope * (x[i] - wx / w);
    chi += off * off / (y[i].error * y[i].error);
  }
  const auto freedom = static_cast<double>(x.size()) - 2;
  const double more = freedom > 0 ? std::max(1.0, std::sqrt(chi / freedom)) : 1.0;
  return {slope, more / std::sqrt(xx)};
}

}  // namespace headflow
