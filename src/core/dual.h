#pragma once

// Numbers with one tangent: value + tangent * epsilon, epsilon^2 = 0. What is written for a scalar
// type gives directional derivatives with Dual: formulas of activations, and the gradient code of
// the quadratures, which then gives Hessian-vector products.

#include <cmath>

namespace headflow {

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
  Dual& operator/=(const Dual& o) { return *this = *this / o; }
  friend Dual operator+(Dual a, const Dual& b) { return a += b; }
  friend Dual operator-(Dual a, const Dual& b) { return a -= b; }
  friend Dual operator*(Dual a, const Dual& b) { return a *= b; }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const double q = a.value / b.value;
    return {q, (a.tangent - q * b.tangent) / b.value};
  }
  friend Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
  friend bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend bool operator<=(const Dual& a, const Dual& b) { return a.value <= b.value; }
  friend bool operator>=(const Dual& a, const Dual& b) { return a.value >= b.value; }
};

inline double value_of(double x) { return x; }
inline double value_of(const Dual& x) { return x.value; }

inline Dual exp(const Dual& x) {
  const double e = std::exp(x.value);
  return {e, e * x.tangent};
}
inline Dual expm1(const Dual& x) { return {std::expm1(x.value), std::exp(x.value) * x.tangent}; }
inline Dual log(const Dual& x) { return {std::log(x.value), x.tangent / x.value}; }
inline Dual log1p(const Dual& x) { return {std::log1p(x.value), x.tangent / (1 + x.value)}; }
inline Dual sqrt(const Dual& x) {
  const double root = std::sqrt(x.value);
  return {root, x.tangent / (2 * root)};
}
inline Dual tanh(const Dual& x) {
  const double t = std::tanh(x.value);
  return {t, (1 - t * t) * x.tangent};
}
inline Dual abs(const Dual& x) { return x.value < 0 ? -x : x; }
inline Dual max(const Dual& a, const Dual& b) { return a.value < b.value ? b : a; }

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

}  // namespace headflow
