#include "theory/log_gamma.h"

#include <cmath>
#include <numbers>

namespace headflow {

// Stirling's series at z + n with |z + n| > 12, and Gamma(z) = Gamma(z + n) / (z ... (z + n - 1)).
std::complex<double> log_gamma(std::complex<double> z) {
  std::complex<double> shift = 0.0;
  while (std::norm(z) < 144.0) {
    shift += std::log(z);
    z += 1.0;
  }
  // B_2k / (2k (2k - 1))
  constexpr double kSeries[] = {1.0 / 12,   -1.0 / 360,       1.0 / 1260, -1.0 / 1680,
                                1.0 / 1188, -691.0 / 360360., 1.0 / 156,  -3617.0 / 122400};
  const std::complex<double> inverse = 1.0 / z, square = inverse * inverse;
  std::complex<double> sum = 0.0, power = inverse;
  for (const double term : kSeries) {
    sum += term * power;
    power *= square;
  }
  const double half_log_two_pi = 0.5 * std::log(2.0 * std::numbers::pi);
  return (z - 0.5) * std::log(z) - z + half_log_two_pi + sum - shift;
}

}  // namespace headflow
