#pragma once

// Numbers with their first two derivatives along one line: f(x + t) = value + first t + second
// t^2/2. A formula written for a scalar type gives f, f' and f'' with Taylor.

#include <cmath>

namespace headflow {

struct Taylor {
  double value = 0, first = 0, second = 0;

  Taylor() = default;
  Taylor(double v) : value(v) {}  // NOLINT(google-explicit-constructor): constants mix in freely
  Taylor(double v, double d, double dd) : value(v), first(d), second(dd) {}

  /// f(x), given f, f' and f'' at x.value.
  Taylor through(double f, double df, double ddf) const {
    return {f, df * first, ddf * first * first + df * second};
  }

  friend Taylor operator+(const Taylor& a, const Taylor& b) {
    return {a.value + b.value, a.first + b.first, a.second + b.second};
  }
  friend Taylor operator-(const Taylor& a, const Taylor& b) {
    return {a.value - b.value, a.first - b.first, a.second - b.second};
  }
  friend Taylor operator*(const Taylor& a, const Taylor& b) {
    return {a.value * b.value, a.first * b.value + a.value * b.first,
            a.second * b.value + 2 * a.first * b.first + a.value * b.second};
  }
  friend Taylor operator/(const Taylor& a, const Taylor& b) {
    const double q = a.value / b.value, dq = (a.first - q * b.first) / b.value;
    return {q, dq, (a.second - 2 * dq * b.first - q * b.second) / b.value};
  }
  friend Taylor operator-(const Taylor& a) { return {-a.value, -a.first, -a.second}; }
  Taylor& operator+=(const Taylor& b) { return *this = *this + b; }
  Taylor& operator-=(const Taylor& b) { return *this = *this - b; }
  Taylor& operator*=(const Taylor& b) { return *this = *this * b; }
  Taylor& operator/=(const Taylor& b) { return *this = *this / b; }
  friend bool operator<(const Taylor& a, const Taylor& b) { return a.value < b.value; }
  friend bool operator>(const Taylor& a, const Taylor& b) { return a.value > b.value; }
  friend bool operator<=(const Taylor& a, const Taylor& b) { return a.value <= b.value; }
  friend bool operator>=(const Taylor& a, const Taylor& b) { return a.value >= b.value; }
};

inline double value_of(const Taylor& x) { return x.value; }
inline Taylor exp(const Taylor& x) {
  const double e = std::exp(x.value);
  return x.through(e, e, e);
}
inline Taylor expm1(const Taylor& x) {
  const double e = std::exp(x.value);
  return x.through(std::expm1(x.value), e, e);
}
inline Taylor log(const Taylor& x) {
  return x.through(std::log(x.value), 1 / x.value, -1 / (x.value * x.value));
}
inline Taylor log1p(const Taylor& x) {
  const double y = 1 / (1 + x.value);
  return x.through(std::log1p(x.value), y, -y * y);
}
inline Taylor sqrt(const Taylor& x) {
  const double root = std::sqrt(x.value);
  return x.through(root, 0.5 / root, -0.25 / (root * x.value));
}
inline Taylor tanh(const Taylor& x) {
  const double t = std::tanh(x.value), d = 1 - t * t;
  return x.through(t, d, -2 * t * d);
}
inline Taylor abs(const Taylor& x) { return x.value < 0 ? -x : x; }
inline Taylor max(const Taylor& a, const Taylor& b) { return a.value < b.value ? b : a; }

}  // namespace headflow
