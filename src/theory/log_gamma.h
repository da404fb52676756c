#pragma once

#include <complex>

namespace headflow {

/// log Gamma(z) for Re z > 0, to about 1e-14 max(1, |log Gamma|); continuous, real for real z.
std::complex<double> log_gamma(std::complex<double> z);

}  // namespace headflow
