// The evidence of one Gaussian N(a, Sigma), by Mellin-Barnes integrals. In the eigenbasis of Sigma,
//
//   log E_1 w^-z = sum_i z/2 log(1 + lambda_i) - log(1 + z lambda_i)/2
//                        + a_i^2 z (z - 1) / (2 (1 + z lambda_i)),
//
// and with e^-x = (1/2 pi i) int Gamma(z) x^-z dz on Re z = c > 0
//
//   h = (1/2 pi i) int Gamma(z) E_1 w^-z e^-zu dz,    Q, e^-u g: the same times 1/(1 - z) for c <
//   1,
//                                                     times 1/(z - 1) for c > 1.
//
// The trapezoid rule in Im z with step 2 pi / P gives sum_k e^{kcP} h(u + kP) instead of h(u), so
// P = range of u + digits / (distance of c from the poles at 0 and 1). Of several contours each u
// takes the one where the integrand is least, and with it the rounding error.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "theory/evidence.h"
#include "theory/log_gamma.h"

namespace headflow {
namespace {

using Complex = std::complex<double>;

constexpr int kMostTerms = 1 << 21;  // of all contours; their number grows with the means

class MellinEvidence final : public Evidence {
 public:
  MellinEvidence(const MixtureComponent& component, const EvidenceRange& range)
      : weight_(component.weight), log_weight_(std::log(component.weight)) {
    const Eigen::Index F = component.mean.size();
    if (F > 0) {
      const Matrix covariance = component.factor * component.factor.transpose();
      const SymmetricEigen eigen(covariance);
      variances_ = eigen.eigenvalues().cwiseMax(0.0);
      means_ = eigen.eigenvectors().transpose() * component.mean;
    }
    for (const double c : {0.1, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0}) {
      contours_.push_back(contour(c, range.digits, largest_u() - range.smallest_u()));
      if (!complete_) return;
    }
  }

  /// False if it would take too many terms.
  bool complete() const { return complete_; }

  EvidenceValues at(double u) const override {
    u += log_weight_;  // of weight p: h = p h~(u + log p)
    const Contour* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Contour& contour : contours_) {
      const double size = contour.log_size - contour.c * u - std::log(std::abs(1.0 - contour.c));
      if (size < least) least = size, best = &contour;
    }
    // Terms at c + i n step, n >= 0; those at -n are the complex conjugates.
    const double scale = std::exp(best->log_size - best->c * u) * best->step / std::numbers::pi;
    const double angle = -best->step * u;
    const Complex rotation = std::polar(1.0, angle);
    Complex turn = 1.0;
    double h = 0, q = 0;
    for (std::size_t n = 0; n < best->terms.size(); ++n) {
      // One rotation a term, made exact again every 16 terms.
      turn = n % 16 == 0 ? std::polar(1.0, angle * static_cast<double>(n)) : turn * rotation;
      h += best->terms[n].real() * turn.real() - best->terms[n].imag() * turn.imag();
      q += best->divided[n].real() * turn.real() - best->divided[n].imag() * turn.imag();
    }
    h *= scale, q *= scale;
    const double e = std::exp(u);
    // The factor 1/(1 - z) gives Q left of the pole and -e^-u g right of it.
    const double g = best->c < 1.0 ? 1.0 - e * q : -e * q;
    const double Q = best->c < 1.0 ? q : (1.0 - g) / e;
    return {weight_ * h, weight_ * Q, g};
  }

  std::int64_t nodes() const override {
    std::size_t sum = 0;
    for (const Contour& contour : contours_) sum += contour.terms.size();
    return static_cast<std::int64_t>(sum);
  }

 private:
  struct Contour {
    double c, step, log_size;             ///< log_size = log |Gamma(c) E_1 w^-c|
    std::vector<Complex> terms, divided;  ///< Gamma E_1 w^-z / size, without and with 1/(1 - z)
  };

  Complex log_moment(Complex z) const {
    Complex sum = 0.0;
    for (Eigen::Index i = 0; i < means_.size(); ++i) {
      const double lambda = variances_[i], a = means_[i];
      const Complex d = 1.0 + z * lambda;
      sum += 0.5 * (z * std::log1p(lambda) - std::log(d) + a * a * z * (z - 1.0) / d);
    }
    return sum;
  }

  /// Where g has fallen to zero: beyond 9 standard deviations of -log w under E_0.
  double largest_u() const {
    double mean = 0, variance = 0;
    for (Eigen::Index i = 0; i < means_.size(); ++i) {
      const double lambda = variances_[i], d = 1.0 + lambda, a = means_[i];
      mean += 0.5 * (std::log1p(lambda) - lambda / d + a * a / d);
      variance += 0.5 * lambda * lambda / (d * d) + a * a / (d * d);
    }
    return mean + 9.0 * std::sqrt(variance) + 5.0;
  }

  Contour contour(double c, double digits, double range) {
    Contour out{c, 0, (log_gamma(c) + log_moment(c)).real(), {}, {}};
    const double distance = std::min({c, std::abs(1.0 - c), 1.0});
    out.step = 2.0 * std::numbers::pi / (range + digits / distance);
    for (double n = 0;; ++n) {
      const Complex z(c, n * out.step);
      const Complex value = log_gamma(z) + log_moment(z) - out.log_size;
      if (value.real() < -digits - 5.0) return out;
      complete_ = std::isfinite(value.real()) && ++terms_ < kMostTerms;
      if (!complete_) return out;
      out.terms.push_back(std::exp(value) * (n == 0 ? 0.5 : 1.0));
      out.divided.push_back(out.terms.back() / (1.0 - z));
    }
  }

  double weight_, log_weight_;
  Vector variances_, means_;
  std::vector<Contour> contours_;
  bool complete_ = true;
  int terms_ = 0;
};

}  // namespace

std::unique_ptr<Evidence> mellin_evidence(const MixtureComponent& component,
                                          const EvidenceRange& range) {
  auto out = std::make_unique<MellinEvidence>(component, range);
  return out->complete() ? std::move(out) : nullptr;
}

}  // namespace headflow
