#pragma once

// One-dimensional quadrature rules.

#include <functional>
#include <vector>

#include "core/matrix.h"

namespace headflow::factorised {

struct Rule {
  std::vector<double> x, w;
  int size() const { return static_cast<int>(x.size()); }
};

/// Nodes beyond which the weights of Gauss-Hermite rules underflow.
inline constexpr int kMostGaussHermite = 60;

/// Gauss rule of n <= kMostGaussHermite nodes for N(0, 1): exact for polynomials of degree below
/// 2n. Made once.
const Rule& gauss_hermite(int n);

/// Trapezoid rule for N(0, 1) on [-reach, reach], weights normalised.
Rule normal_trapezoid(double step, double reach);

/// Gauss-Hermite nodes for E f(u + sigma z), f = exp(-e^t) and its first derivatives, to about
/// e^(-digits); measured, sigma <= 2.
int gauss_hermite_size(double sigma, double digits);

/// The frequency up to which f and its first derivatives must be resolved: their Fourier transform
/// falls as w^3 e^(-pi w / 2).
double resolved_frequency(double digits);

/// A rule for E phi(u + sigma z), z ~ N(0, 1), phi = f or a derivative, to about e^(-digits):
/// Gauss-Hermite for small sigma, the trapezoid rule for large.
Rule normal_rule(double sigma, double digits);

/// How many nodes that rule has, and the trapezoid rule, nearly; infinite for an infinite sigma.
double normal_rule_size(double sigma, double digits);

/// Gauss rule of n nodes for the measure sum_i w_i delta_{x_i}, by Lanczos.
Rule gauss_of_measure(const std::vector<double>& x, const std::vector<double>& w, int n);

/// p_k(x_i), k < count: the polynomials orthonormal under N(0, 1), one row for each k.
Matrix hermite(const std::vector<double>& x, int count);

}  // namespace headflow::factorised
