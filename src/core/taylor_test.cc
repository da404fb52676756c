#include "core/taylor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace headflow::taylor_test {
namespace {

using Formula = std::function<Taylor(const Taylor&)>;

/// f, f' and f'' by central differences of sixth order.
Taylor by_differences(const Formula& f, double x) {
  constexpr double h = 1e-2;
  const auto at = [&](int i) { return f(Taylor(x + i * h)).value; };
  const double first = (45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + at(3) - at(-3)) / (60 * h);
  const double second =
      (270 * (at(1) + at(-1)) - 27 * (at(2) + at(-2)) + 2 * (at(3) + at(-3)) - 490 * at(0)) /
      (180 * h * h);
  return {at(0), first, second};
}

double distance(const Taylor& a, const Taylor& b) {
  return std::abs(a.value - b.value) + std::abs(a.first - b.first) + std::abs(a.second - b.second);
}

TEST(Taylor, DerivativesOfEveryFunction) {
  const Formula formulas[] = {
      [](const Taylor& x) { return exp(x); },
      [](const Taylor& x) { return expm1(0.5 * x); },
      [](const Taylor& x) { return log(x); },
      [](const Taylor& x) { return log1p(x * x); },
      [](const Taylor& x) { return sqrt(x); },
      [](const Taylor& x) { return tanh(x); },
      [](const Taylor& x) { return abs(-x) * x; },
      [](const Taylor& x) { return max(x * x, 0.1); },
      [](const Taylor& x) { return x / (1.0 + exp(-x)) - 3.0 * x * x + x; },
  };
  for (const Formula& f : formulas) {
    const Taylor exact = f(Taylor(0.7, 1.0, 0.0));
    EXPECT_LT(distance(exact, by_differences(f, 0.7)), 1e-8);
    Taylor wrong = exact;  // the same comparison notices a wrong second derivative
    wrong.second *= 1.001;
    EXPECT_GT(distance(wrong, by_differences(f, 0.7)) + (exact.second == 0), 1e-6);
  }
}

}  // namespace
}  // namespace headflow::taylor_test
