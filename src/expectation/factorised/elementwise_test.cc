// Activations that normalise nothing: sigmoid attention by one- and two-dimensional integrals.

#include <gtest/gtest.h>

#include <cmath>

#include "expectation/factorised/factorised.h"
#include "expectation/qmc.h"
#include "model/elementwise_activation.h"
#include "support/problems.h"
#include "support/random_problems.h"

namespace headflow::elementwise_test {
namespace {

using testing::flatten;

/// Largest deviation of the loss and of an entry of the gradient, in errors of both.
double deviation_in_errors(const Evaluation& a, const Evaluation& b) {
  const Vector x = flatten(a.grad) - flatten(b.grad), e = flatten(a.grad_error),
               f = flatten(b.grad_error);
  return std::max(std::abs(a.loss - b.loss) / (a.loss_error + b.loss_error),
                  (x.array().abs() / (e + f).array()).maxCoeff());
}

// 36 problems of every kind of prior, 10 to 40 numbers each, with 15 degrees of freedom: a false
// alarm at 7 standard errors has probability 4e-6 a number, 4e-3 in all; the seed is fixed.
TEST(Elementwise, AgreesWithSamples) {
  testing::Draw draw(5);
  for (const char* prior : testing::kAllPriors) {
    for (int number = 0; number < 6; ++number) {
      const int F = std::string(prior) == "flipping" ? draw.integer(2, 3) : draw.integer(1, 3);
      const Problem problem(testing::random_options("sigmoid", prior, draw.integer(1, 12),
                                                    draw.integer(1, 4), F, draw));
      const Point point = testing::random_heads(problem, draw.log_uniform(0.1, 4), 0.7, draw);
      EngineOptions options = testing::engine_options(16 * 512, 3);
      options.tolerance = 1e-9;
      Evaluation exact, sampled;
      Factorised(problem, options).evaluate(point, {.gradient_error = true}, exact);
      Qmc(problem, options).evaluate(point, {.gradient_error = true}, sampled);
      EXPECT_LT(exact.loss_error, 1e-8);
      EXPECT_LT(exact.grad_error.max(), 1e-8);
      EXPECT_LT(deviation_in_errors(exact, sampled), 7) << prior << " " << number;
      exact.grad.m *= 1.3;  // the comparison notices such a factor
      if (exact.grad.m.cwiseAbs().maxCoeff() > 1e-2) {
        EXPECT_GT(deviation_in_errors(exact, sampled), 7) << prior << " " << number;
      }
    }
  }
}

// The gradient is that of the loss, by central differences with the same nodes.
TEST(Elementwise, GradientIsThatOfTheLoss) {
  testing::Draw draw(6);
  const Problem problem(testing::random_options("sigmoid", "mixture", 5, 3, 2, draw));
  const Point point = testing::random_heads(problem, 1, 0.5, draw);
  EngineOptions options;
  options.tolerance = 1e-11;
  Factorised engine(problem, options);
  engine.adapt(point);
  Evaluation e;
  engine.evaluate(point, {}, e);
  const Vector grad = flatten(e.grad), x = flatten(point);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const auto loss = [&](double step) {
      Point there = point;
      const Vector y = x + step * Vector::Unit(x.size(), i);
      there.unpack(y.data());
      Evaluation out;
      engine.evaluate(there, {.loss_error = false}, out);
      return out.loss;
    };
    constexpr double h = 1e-3;
    const double slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
    EXPECT_NEAR(slope, grad[i], 1e-8) << i;
  }
}

// At m = R = 0 attention is a = v / (1 + e^-b) everywhere: E = (1 - a)^2 + (L - 1) a^2.
TEST(Elementwise, ClosedFormAtTheOrigin) {
  const Problem problem(testing::problem_options("sigmoid", "flipping", 7, 2, 2));
  Point point = problem.zero_point();
  point["b"].setConstant(-0.7);
  point["v"].setConstant(1.3);
  Evaluation e;
  Factorised(problem, {}).evaluate(point, {}, e);
  const double a = 1.3 / (1 + std::exp(0.7)), slope = -2 * (1 - a) + 2 * 6 * a;
  EXPECT_NEAR(e.loss, (1 - a) * (1 - a) + 6 * a * a, 1e-13);
  EXPECT_NEAR(e.grad["v"][0], slope * a / 1.3, 1e-13);
  EXPECT_NEAR(e.grad["b"][0], slope * a * (1 - a / 1.3) / 2, 1e-13);
  EXPECT_EQ(problem.start_point()["b"][0], -std::log(7.0));
}

struct Ramp {
  template <class S>
  S operator()(const S& chi, const S* /*p*/) const {
    return value_of(chi) > 0 ? chi : S(0.0);
  }
};

class Ramps : public ElementwiseActivation<Ramp> {
 public:
  std::string_view name() const override { return "ramp"; }
  std::string_view formula() const override { return "max(chi_hl, 0)"; }
  bool smooth() const override { return false; }
};

// Price's theorem would leave the kink out of the gradient, and a finer rule, too.
TEST(Elementwise, KinksAreForSamples) {
  const std::vector<MixtureComponent> normal = {{1.0, Vector::Zero(2), Matrix::Identity(2, 2)}};
  const Problem problem(std::make_shared<Ramps>(), std::make_shared<GaussianMixture>(normal), {});
  EXPECT_NE(Factorised::why_not(problem).find("kinks"), std::string::npos);
  EXPECT_THROW(Factorised(problem, {}), OptionError);
  EXPECT_EQ(make_engine(problem, {.tolerance = 1e-2})->sampled(), true);
}

}  // namespace
}  // namespace headflow::elementwise_test
