// Loss and gradient of the Monte-Carlo engine, sample by sample, against automatic
// differentiation of the plain implementation in tests/support, and against differences.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/formula_activation.h"
#include "support/each_target.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/reference_model.h"

namespace headflow::gradient_test {
namespace {

using testing::engine_options;
using testing::flatten;
using testing::problem_options;
using testing::random_point;

constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

/// The stated accuracy: 1e-12 of the largest entry, or 1e-15 (losses and gradients that vanish
/// because every weight is saturated).
void expect_close(const Vector& got, const Vector& wanted, double relative = 1e-12) {
  const double tolerance = relative * wanted.cwiseAbs().maxCoeff() + 1e-15;
  EXPECT_TRUE(got.allFinite());
  EXPECT_LE((got - wanted).cwiseAbs().maxCoeff(), tolerance)
      << "got    " << got.transpose() << "\nwanted " << wanted.transpose();
}

void compare_with_reference(const Problem& problem, const std::string& activation,
                            const Point& point, std::int64_t samples, double relative = 1e-12) {
  MonteCarlo engine(problem, engine_options(samples, 5));
  Evaluation got;
  engine.evaluate(point, {.gradient_error = true, .second_moment = false}, got);
  double loss = 0;
  Vector grad = Vector::Zero(point.size());
  for (std::int64_t i = 0; i < samples; ++i) {
    const MonteCarlo::Sample sample = engine.sample(i);
    const auto one = testing::differentiate(activation, sample.x, sample.relevant, point);
    loss += one.loss / static_cast<double>(samples);
    grad += flatten(one.grad) / static_cast<double>(samples);
  }
  EXPECT_NEAR(got.loss, loss, 1e-12 * std::abs(loss) + 1e-15);
  expect_close(flatten(got.grad), grad, relative);
}

struct Shape {
  int L, H, F;
};

TEST(Gradient, EqualsAutomaticDifferentiation) {
  int number = 0;
  const Shape shapes[] = {{1, 1, 2}, {1, 3, 2}, {2, 1, 2}, {4, 2, 2},
                          {5, 8, 3}, {9, 3, 4}, {12, 5, 7}};
  for (const char* activation : kActivations) {
    for (const char* prior : {"flipping", "gaussian", "full", "discrete"}) {
      for (const auto& [L, H, F] : shapes) {
        if (testing::left_out(number++, 4)) continue;
        SCOPED_TRACE(fmt::format("{} {} L {} H {} F {}", activation, prior, L, H, F));
        const Problem problem(problem_options(activation, prior, L, H, F));
        compare_with_reference(problem, activation, random_point(problem, 11), 83);
      }
    }
  }
}

TEST(Gradient, OneFeature) {
  for (const char* activation : kActivations) {
    const Problem problem(problem_options(activation, "gaussian", 3, 2, 1));
    compare_with_reference(problem, activation, random_point(problem, 12), 50);
  }
}

TEST(Gradient, EveryInstructionSet) {
  testing::for_each_target([](std::int64_t) {
    for (const char* activation : kActivations) {
      const Problem problem(problem_options(activation, "gaussian", 6, 5, 3));
      compare_with_reference(problem, activation, random_point(problem, 13), 70);
    }
  });
}

/// Softmax-1 by its formula alone, as a user would add it.
struct SinkFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* parameters, S* sigma) const {
    using std::exp;
    for (int h = 0; h < n.H; ++h) {
      S sum = exp(parameters[h]);
      for (int l = 0; l < n.L; ++l) sum += exp(chi[h * n.L + l]);
      for (int l = 0; l < n.L; ++l) {
        sigma[h * n.L + l] = parameters[n.H] * exp(chi[h * n.L + l]) / sum;
      }
    }
  }
};

class Sink final : public FormulaActivation<SinkFormula> {
 public:
  std::string_view name() const override { return "sink"; }
  std::string_view formula() const override { return "v e^chi_hl / (e^b_h + sum_l e^chi_hl)"; }
  std::vector<BlockInfo> blocks() const override {
    return {{"b", "bias of a head", {Axis::head}}, {"v", "scale", {}}};
  }
};

// Without anything that is faster for many placements of one draw. The flipping spike and the
// discrete prior have their exponentials looked up.
TEST(Gradient, OfAnActivationByItsFormula) {
  for (const char* prior : {"flipping", "gaussian", "full", "discrete"}) {
    SCOPED_TRACE(prior);
    const ProblemOptions options = problem_options("softmax-1", prior, 5, 3, 2);
    const auto law = Problem(options).prior_times(Matrix::Identity(2, 2));
    const Problem problem(std::make_shared<const Sink>(), law, options);
    compare_with_reference(problem, "softmax-1", random_point(problem, 18), 83);
  }
}

// Scores up to 700 in absolute value and beyond: the product of the rounding of a score (one
// part in 1e16 of it) with the largest derivative is 1e-13 times a few.
TEST(Gradient, ExtremeScores) {
  for (const char* activation : kActivations) {
    for (const double scale : {10.0, 60.0, 200.0, 1000.0}) {
      for (const char* prior : {"flipping", "gaussian"}) {
        SCOPED_TRACE(fmt::format("{} {} scale {}", activation, prior, scale));
        const Problem problem(problem_options(activation, prior, 5, 3, 2));
        compare_with_reference(problem, activation, random_point(problem, 14, scale), 96, 1e-10);
      }
    }
  }
}

TEST(Gradient, ScoresReallyReach700) {
  const Problem problem(problem_options("softmax", "gaussian", 5, 3, 2));
  const Point point = random_point(problem, 14, 200.0);
  MonteCarlo engine(problem, engine_options(96, 5));
  double largest = 0;
  for (int i = 0; i < 96; ++i) {
    const Matrix x = engine.sample(i).x;
    const Matrix scores =
        x.leftCols(2) * point.m.transpose() + x.rightCols(3) * point.R.transpose();
    largest = std::max(largest, scores.cwiseAbs().maxCoeff());
  }
  EXPECT_GT(largest, 700.0);
}

TEST(Gradient, ExtremeBiasAndScale) {
  for (const char* activation : {"softmax-1", "b-softmax"}) {
    for (const double b : {-50.0, 50.0, -700.0, 700.0}) {
      for (const double v : {0.0, 1.0, -2.0}) {
        SCOPED_TRACE(fmt::format("{} b {} v {}", activation, b, v));
        const Problem problem(problem_options(activation, "flipping", 4, 3, 2));
        Point point = random_point(problem, 15);
        point["b"] << b, -b, 0.3;
        testing::set_block(point, "v", v);
        compare_with_reference(problem, activation, point, 64);
      }
    }
  }
}

// Central differences of the loss itself, with the step at which truncation (h^2) and rounding
// (1e-16/h) balance: 1e-9 is what they can show.
TEST(Gradient, EqualsDifferencesOfTheLoss) {
  for (const char* activation : kActivations) {
    SCOPED_TRACE(activation);
    const Problem problem(problem_options(activation, "full", 4, 3, 2));
    MonteCarlo engine(problem, engine_options(500, 3));
    const Point point = random_point(problem, 16);
    Evaluation at, plus, minus;
    engine.evaluate(point, {}, at);
    const Vector grad = flatten(at.grad);
    for (Eigen::Index i = 0; i < point.size(); ++i) {
      const double h = 1e-5;
      Vector y = flatten(point);
      Point moved = point;
      y[i] += h;
      moved.unpack(y.data());
      engine.evaluate(moved, {}, plus);
      y[i] -= 2 * h;
      moved.unpack(y.data());
      engine.evaluate(moved, {}, minus);
      EXPECT_NEAR((plus.loss - minus.loss) / (2 * h), grad[i], 1e-9);
    }
  }
}

// E[sum_l g_hl g_h'l] against the derivatives of each sample with respect to the scores, obtained
// by making the scores themselves the parameters (x = identity rows).
TEST(Gradient, SecondMoment) {
  for (const char* activation : kActivations) {
    SCOPED_TRACE(activation);
    const int L = 4, H = 3, F = 2, N = 40;
    const Problem problem(problem_options(activation, "flipping", L, H, F));
    MonteCarlo engine(problem, engine_options(N, 3));
    const Point point = random_point(problem, 17);
    Evaluation got;
    engine.evaluate(point, {.gradient_error = false, .second_moment = true}, got);
    Matrix wanted = Matrix::Zero(H, H);
    for (int i = 0; i < N; ++i) {
      const MonteCarlo::Sample sample = engine.sample(i);
      // A model with L "features", m = scores and tokens e_l has the same loss; its m-gradient is
      // g.
      const Point scores{
          point.m * sample.x.leftCols(F).transpose() + point.R * sample.x.rightCols(H).transpose(),
          Matrix::Zero(H, H), point.blocks};
      Matrix x = Matrix::Zero(L, L + H);
      x.leftCols(L).setIdentity();
      const Matrix g = testing::differentiate(activation, x, sample.relevant, scores).grad.m;
      wanted += g * g.transpose() / N;
    }
    EXPECT_LE((got.second_moment - wanted).cwiseAbs().maxCoeff(), 1e-13);
  }
}

}  // namespace
}  // namespace headflow::gradient_test
