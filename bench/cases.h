#pragma once

// What is measured: shapes, problem and point. peers/torch_loss_gradient.py has the same.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "model/point.h"
#include "model/problem.h"

namespace headflow::bench {

inline constexpr std::int64_t kSamples = 100'000;
inline constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

struct Case {
  int H, F, L;
  std::string name() const { return fmt::format("H{}F{}L{}", H, F, L); }
};
inline constexpr Case kCases[] = {{2, 2, 10}, {4, 2, 5}, {8, 3, 5}, {8, 4, 5}};

inline Problem make_problem(const Case& c, const std::string& activation) {
  ProblemOptions options;
  options.activation = activation;
  options.tokens = c.L;
  options.heads = c.H;
  options.features = c.F;
  options.prior_parameters["nu"] = Matrix::Constant(1, 1, 2.0);
  return Problem(options);
}

/// m of full rank with rows of norm 1, R = identity + small noise, b = 0, v = 1: a point in
/// mid-training, by a formula that any language can repeat. R is multiplied by `size`.
inline Point make_point(const Case& c, const std::string& activation, double size = 1.0) {
  Point point = make_problem(c, activation).start_point();
  for (int h = 0; h < c.H; ++h) {
    for (int f = 0; f < c.F; ++f) point.m(h, f) = std::cos(1.0 + std::pow(h + 2 * f, 2));
    point.m.row(h).normalize();
    for (int k = 0; k < c.H; ++k) {
      point.R(h, k) = size * ((h == k ? 1.0 : 0.0) + 0.1 * std::sin(1.0 + 2.0 * h + 3.0 * k));
    }
  }
  return point;
}

}  // namespace headflow::bench
