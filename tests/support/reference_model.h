#pragma once

// A plain scalar implementation of the model, written from its definition and sharing no code
// with the library, differentiated automatically. Slow on purpose.

#include <Eigen/Core>
#include <cmath>
#include <string>
#include <unsupported/Eigen/AutoDiff>
#include <vector>

#include "model/point.h"

namespace headflow::testing {

template <class T>
using Grid = std::vector<std::vector<T>>;

inline double value_of(double x) { return x; }
template <class D>
double value_of(const Eigen::AutoDiffScalar<D>& x) {
  return x.value();
}

/// sigma_hl of every head and token, from the table of activations in the paper.
template <class T>
Grid<T> sigma(const std::string& activation, const Grid<T>& chi, const std::vector<T>& b,
              const T& v) {
  using std::exp;
  const std::size_t H = chi.size(), L = chi[0].size();
  Grid<T> out(H, std::vector<T>(L));
  const bool joint = activation == "b-softmax", sink = activation == "softmax-1";
  const auto score = [&](std::size_t h, std::size_t l) -> T {
    return joint ? T(chi[h][l] + b[h]) : chi[h][l];
  };
  for (std::size_t h = 0; h < H; ++h) {
    double top = sink ? value_of(b[h]) : -HUGE_VAL;
    for (std::size_t k = 0; k < H; ++k) {
      if (!joint && k != h) continue;
      for (std::size_t l = 0; l < L; ++l) top = std::max(top, value_of(score(k, l)));
    }
    T total = sink ? T(exp(T(b[h] - top))) : T(0.0 * b[h]);
    for (std::size_t k = 0; k < H; ++k) {
      if (!joint && k != h) continue;
      for (std::size_t l = 0; l < L; ++l) total = total + exp(T(score(k, l) - top));
    }
    for (std::size_t l = 0; l < L; ++l) {
      const T share = exp(T(score(h, l) - top)) / total;
      out[h][l] = sink ? T(v * share) : joint ? T(share * double(H)) : share;
    }
  }
  return out;
}

/// sum_l (delta_{l,relevant} - (1/H) sum_h sigma_hl)^2 with chi_h = [m R]_h . x_l.
template <class T>
T sample_loss(const std::string& activation, const Matrix& x, int relevant, const Grid<T>& weights,
              const std::vector<T>& b, const T& v) {
  const std::size_t H = weights.size();
  const auto L = static_cast<std::size_t>(x.rows()), K = static_cast<std::size_t>(x.cols());
  Grid<T> chi(H, std::vector<T>(L));
  for (std::size_t h = 0; h < H; ++h) {
    for (std::size_t l = 0; l < L; ++l) {
      T sum = weights[h][0] * x(Eigen::Index(l), 0);
      for (std::size_t k = 1; k < K; ++k)
        sum = sum + weights[h][k] * x(Eigen::Index(l), Eigen::Index(k));
      chi[h][l] = sum;
    }
  }
  const Grid<T> s = sigma(activation, chi, b, v);
  T loss = 0.0 * v;
  for (std::size_t l = 0; l < L; ++l) {
    T mean = s[0][l];
    for (std::size_t h = 1; h < H; ++h) mean = mean + s[h][l];
    const T w = (static_cast<int>(l) == relevant ? 1.0 : 0.0) - mean / double(H);
    loss = loss + w * w;
  }
  return loss;
}

struct SampleDerivative {
  double loss;
  Point grad;
};

/// Loss of one sample and its gradient by forward automatic differentiation. Blocks other than b
/// and v are none of the paper's.
inline SampleDerivative differentiate(const std::string& activation, const Matrix& x, int relevant,
                                      const Point& point) {
  using Dual = Eigen::AutoDiffScalar<Vector>;
  const int H = point.heads(), F = point.features();
  const Eigen::Index n = point.size();
  const Vector flat = point.packed();
  const auto variable = [&](Eigen::Index i) { return Dual(flat[i], n, i); };
  const auto constant = [&](double value) { return Dual(value, Vector::Zero(n)); };
  Grid<Dual> weights;
  std::vector<Dual> b(static_cast<std::size_t>(H), constant(0.0));
  Dual v = constant(1.0);
  for (int h = 0; h < H; ++h) {
    weights.emplace_back();
    for (int f = 0; f < F; ++f) weights.back().push_back(variable(h * F + f));
    for (int k = 0; k < H; ++k) weights.back().push_back(variable(H * F + h * H + k));
  }
  for (const BlockLayout::Entry& e : point.blocks.entries()) {
    const Eigen::Index first = H * (F + H) + e.offset;
    for (Eigen::Index i = 0; i < e.size; ++i) {
      (e.info.name == "b" ? b[static_cast<std::size_t>(i)] : v) = variable(first + i);
    }
  }
  const Dual loss = sample_loss(activation, x, relevant, weights, b, v);
  SampleDerivative out{loss.value(), Point::zero_like(point)};
  out.grad.unpack(loss.derivatives().data());
  return out;
}

}  // namespace headflow::testing
