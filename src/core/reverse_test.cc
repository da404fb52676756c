// Both kinds of automatic derivatives, of every function there is, against differences.

#include "core/reverse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "core/dual.h"
#include "support/differences.h"

namespace headflow::reverse_test {
namespace {

double by_differences(const auto& f, double x) { return testing::slope(f, x, 1.0 / 256); }

/// Differences are good to 2e-13 at the points below.
bool close(double a, double b) { return std::abs(a - b) <= 1e-11 * std::max(1.0, std::abs(b)); }

double by_dual(const auto& f, double x) { return f(Dual(x, 1.0)).tangent; }

double by_reverse(const auto& f, double x) {
  Tape tape;
  const Reverse in = tape.input(x), out = f(in);
  tape.clear_adjoints();
  tape.add_adjoint(out, 1.0);
  tape.go_back();
  return tape.adjoint(in);
}

/// f of one number, written for any type of it.
void check(const char* name, const auto& f, std::initializer_list<double> points) {
  for (const double x : points) {
    SCOPED_TRACE(::testing::Message() << name << " at " << x);
    const double want = by_differences(f, x);
    EXPECT_EQ(value_of(f(Dual(x, 1.0))), f(x));
    EXPECT_EQ(value_of(f(Reverse(x))), f(x));
    EXPECT_TRUE(close(by_dual(f, x), want)) << by_dual(f, x) << " " << want;
    EXPECT_TRUE(close(by_reverse(f, x), want)) << by_reverse(f, x) << " " << want;
    EXPECT_FALSE(close(-by_dual(f, x), want)) << "negative control";
  }
}

/// f of two numbers: along either with the other constant (a double among Duals and Reverses), and
/// along both, where the derivatives add.
void check_both(const char* name, const auto& f) {
  for (const double c : {0.75, -1.5}) {
    check(name, [&](const auto& x) { return f(x, std::decay_t<decltype(x)>(c)); }, {1.25, -2.0});
    check(name, [&](const auto& x) { return f(std::decay_t<decltype(x)>(c), x); }, {1.25, -2.0});
  }
}

TEST(Derivatives, OfFunctions) {
  using std::abs, std::exp, std::expm1, std::log, std::log1p, std::sqrt, std::tanh;
  check("exp", [](const auto& x) { return exp(x); }, {-1.5, 0.0, 2.0});
  check("expm1", [](const auto& x) { return expm1(x); }, {-1.5, 1e-9, 2.0});
  check("log", [](const auto& x) { return log(x); }, {0.5, 1.0, 7.0});
  check("log1p", [](const auto& x) { return log1p(x); }, {-0.5, 1e-9, 7.0});
  check("sqrt", [](const auto& x) { return sqrt(x); }, {0.5, 1.0, 7.0});
  check("tanh", [](const auto& x) { return tanh(x); }, {-1.5, 0.0, 2.0});
  check("abs", [](const auto& x) { return abs(x); }, {-1.5, 0.25, 2.0});
  check("minus", [](const auto& x) { return -x; }, {-1.5, 2.0});
}

TEST(Derivatives, OfOperators) {
  check_both("+", [](const auto& x, const auto& y) { return x + y; });
  check_both("-", [](const auto& x, const auto& y) { return x - y; });
  check_both("*", [](const auto& x, const auto& y) { return x * y; });
  check_both("/", [](const auto& x, const auto& y) { return x / y; });
  check_both("+=", [](auto x, const auto& y) { return x += y; });
  check_both("-=", [](auto x, const auto& y) { return x -= y; });
  check_both("*=", [](auto x, const auto& y) { return x *= y; });
  check_both("/=", [](auto x, const auto& y) { return x /= y; });
  // The same number on both sides, where both partial derivatives count.
  check("x + x", [](const auto& x) { return x + x; }, {1.25, -2.0});
  check("x * x", [](const auto& x) { return x * x; }, {1.25, -2.0});
  check("x / (1 + x)", [](const auto& x) { return x / (1.0 + x); }, {1.25, -2.0});
  check("x *= x", [](auto x) { return x *= x; }, {1.25, -2.0});
  check("x - 2 x", [](const auto& x) { return x - 2.0 * x; }, {1.25, -2.0});
}

TEST(Derivatives, OfTheLargerOfTwo) {
  using std::max;
  check("larger", [](const auto& x) { return max(x, 0.5 * x); }, {1.25, -2.0});
  check("with a constant", [](const auto& x) { return max(x, std::decay_t<decltype(x)>(0.5)); },
        {1.25});
  EXPECT_EQ(by_dual([](const Dual& x) { return max(x, Dual(5.0)); }, 1.25), 0.0);
  EXPECT_EQ(by_reverse([](const Reverse& x) { return max(Reverse(5.0), x); }, 1.25), 0.0);
  // Decisions are made by the values.
  EXPECT_TRUE(Dual(1.0, 5.0) < Dual(2.0) && Dual(2.0) > Dual(1.0, 5.0));
  EXPECT_FALSE(Dual(2.0) < Dual(1.0, 5.0) || Dual(1.0) > Dual(1.0, -1.0));
  EXPECT_TRUE(Reverse(1.0) < Reverse(2.0) && Reverse(2.0) > Reverse(1.0));
  EXPECT_FALSE(Reverse(2.0) < Reverse(1.0) || Reverse(1.0) > Reverse(1.0));
}

// Those that Dual alone has.
TEST(Derivatives, OfPowersAndDeviations) {
  const auto check_dual = [](const auto& f, double x) {
    EXPECT_EQ(value_of(f(Dual(x, 1.0))), f(x));
    EXPECT_TRUE(close(by_dual(f, x), by_differences(f, x))) << by_dual(f, x);
    EXPECT_FALSE(close(-by_dual(f, x), by_differences(f, x))) << "negative control";
  };
  for (const double x : {0.5, 1.0, 7.0}) {
    check_dual([](const auto& y) { return deviation(y); }, x);
    for (const double p : {-1.5, 0.5, 3.0}) {
      check_dual([p](const auto& y) { return power(y, p); }, x);
    }
  }
  for (const double none : {0.0, -1e-20}) {  // a variance that vanishes, and one that is rounding
    EXPECT_EQ(deviation(Dual(none, 1.0)).value, 0.0);
    EXPECT_EQ(deviation(Dual(none, 1.0)).tangent, 0.0);
  }
}

/// Everything together, of three numbers, with intermediate results that are used several times.
template <class S>
S composite(const S& x, const S& y, const S& z) {
  using std::abs, std::exp, std::expm1, std::log, std::log1p, std::max, std::sqrt, std::tanh;
  S a = exp(-x * y) / (1.0 + sqrt(z));
  const S b = tanh(a - 2.0 * y) * log(z) + abs(x - z), c = max(a * b, expm1(0.1 * y));
  a += b * c;
  a -= log1p(z * z) / y;
  a *= c;
  return a / (b + 3.0) - a;
}

// All derivatives from one tape; along one direction with tangents.
TEST(Derivatives, OfAComposite) {
  const double at[] = {0.5, 1.25, 2.0}, direction[] = {1.0, -0.5, 0.25};
  Tape tape;
  const Reverse x = tape.input(at[0]), y = tape.input(at[1]), z = tape.input(at[2]);
  const Reverse out = composite(x, y, z);
  EXPECT_EQ(out.value(), composite(at[0], at[1], at[2]));
  const auto gradient = [&](double weight) {
    tape.clear_adjoints();
    tape.add_adjoint(out, weight);
    tape.go_back();
    return std::array{tape.adjoint(x), tape.adjoint(y), tape.adjoint(z)};
  };
  const auto once = gradient(1.0), twice = gradient(2.0);
  double along = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double want = by_differences(
        [&](double t) {
          return composite(i == 0 ? t : at[0], i == 1 ? t : at[1], i == 2 ? t : at[2]);
        },
        at[i]);
    EXPECT_TRUE(close(once[i], want)) << i << ": " << once[i] << " " << want;
    EXPECT_FALSE(close(-once[i], want)) << "negative control";
    EXPECT_EQ(twice[i], 2 * once[i]) << "adjoints are linear, and cleared before";
    along += direction[i] * once[i];
  }
  const Dual tangent =
      composite(Dual(at[0], direction[0]), Dual(at[1], direction[1]), Dual(at[2], direction[2]));
  EXPECT_EQ(tangent.value, out.value());
  EXPECT_TRUE(close(tangent.tangent, along)) << tangent.tangent << " " << along;
}

TEST(Derivatives, OfAWeightedSumOfResults) {
  Tape tape;
  for (const double at : {0.5, 2.0}) {  // the second time with the memory of the first
    tape.clear();
    const Reverse x = tape.input(at), first = exp(x), second = x * x, constant = 3.0;
    tape.clear_adjoints();
    tape.add_adjoint(first, 0.25);
    tape.add_adjoint(second, -2.0);
    tape.add_adjoint(constant, 7.0);
    tape.go_back();
    EXPECT_DOUBLE_EQ(tape.adjoint(x), 0.25 * std::exp(at) - 4.0 * at);
    EXPECT_EQ(tape.adjoint(constant), 0.0);
    EXPECT_EQ(tape.adjoint(constant * Reverse(2.0)), 0.0) << "constants leave no trace";
  }
}

}  // namespace
}  // namespace headflow::reverse_test
