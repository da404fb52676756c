#pragma once

namespace headflow::testing {

/// f'(x) by central differences of eighth order. The step is a power of two, so that x + k step is
/// exact: what is left is rounding of f, 1e-16 |f| / step, and step^8 / 630 times a ninth
/// derivative.
template <class F>
double slope(const F& f, double x, double step = 1.0 / 64) {
  const double weights[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  double sum = 0;
  for (int k = 1; k <= 4; ++k) sum += weights[k - 1] * (f(x + k * step) - f(x - k * step));
  return sum / step;
}

}  // namespace headflow::testing
