#pragma once

// The Hessian at m = R = 0 by two rules: numbers made of it, and how much the rules differ.

#include <cmath>

#include "analysis/hessian.h"
#include "theory/origin.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {

class SecondDerivativesAt {
 public:
  /// `b`: biases, or none. Coordinates: m_hf is h F + f, then R, then b.
  SecondDerivativesAt(const ProblemOptions& options, const Vector& b, const Context& context) {
    const Problem problem(options);
    Point point = origin(problem);
    if (b.size() > 0) point["b"] = b;
    for (const int i : {0, 1}) {
      const auto engine = quadrature(problem, i == 0 ? 1e-11 : 1e-9, context);
      engine->adapt(point);
      matrix_[i] = hessian(*engine, point).matrix;
    }
  }

  template <class Number>
  Measured operator()(const Number& number) const {
    const double fine = number(matrix_[0]);
    return {fine, std::abs(number(matrix_[1]) - fine) + 1e-13};
  }

 private:
  Matrix matrix_[2];
};

}  // namespace headflow
