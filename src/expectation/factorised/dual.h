#pragma once

// Numbers with one tangent: value + tangent * epsilon, epsilon^2 = 0. The quadratures are
// written for a scalar type; with Dual the gradient code gives Hessian-vector products.

#include <cmath>

namespace headflow::factorised {

struct Dual {
  double value = 0;
  double tangent = 0;

  Dual() = default;
  Dual(double v) : value(v) {}  // NOLINT(google-explicit-constructor): constants mix in freely
  Dual(double v, double t) : value(v), tangent(t) {}

  Dual& operator+=(const Dual& o) {
    value += o.value;
    tangent += o.tangent;
    return *this;
  }
  Dual& operator-=(const Dual& o) {
    value -= o.value;
    tangent -= o.tangent;
    return *this;
  }
  Dual& operator*=(const Dual& o) {
    tangent = tangent * o.value + value * o.tangent;
    value *= o.value;
    return *this;
  }
  friend Dual operator+(Dual a, const Dual& b) { return a += b; }
  friend Dual operator-(Dual a, const Dual& b) { return a -= b; }
  friend Dual operator*(Dual a, const Dual& b) { return a *= b; }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const double q = a.value / b.value;
    return {q, (a.tangent - q * b.tangent) / b.value};
  }
  friend Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
};

inline double value_of(double x) { return x; }
inline double value_of(const Dual& x) { return x.value; }

inline Dual exp(const Dual& x) {
  const double e = std::exp(x.value);
  return {e, e * x.tangent};
}

/// The square root of a variance. What it is applied to here is a squared length, whose
/// derivative vanishes where it does, so that the tangent at 0 is 0.
inline double deviation(double variance) { return variance > 0 ? std::sqrt(variance) : 0.0; }
inline Dual deviation(const Dual& variance) {
  const double root = deviation(variance.value);
  return {root, root > 0 ? variance.tangent / (2 * root) : 0.0};
}

/// x^p of a positive number.
inline double power(double x, double p) { return std::exp(p * std::log(x)); }
inline Dual power(const Dual& x, double p) {
  const double y = std::exp(p * std::log(x.value));
  return {y, p * y / x.value * x.tangent};
}

}  // namespace headflow::factorised
