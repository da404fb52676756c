// Lemmas A.1 to A.4 of the paper, as properties of the engine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"

namespace headflow::lemmas_test {
namespace {

using testing::engine_options;
using testing::problem_options;

constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

Point unspecialised(const Problem& problem, const Vector& m, double r1, double r2, double b,
                    double v) {
  const int H = problem.H();
  Point point = problem.zero_point();
  point.m = Vector::Ones(H) * m.transpose();
  point.R = r1 * Matrix::Identity(H, H) + r2 * Matrix::Ones(H, H);
  testing::set_block(point, "b", b);
  testing::set_block(point, "v", v);
  return point;
}

/// |difference| < 4.5 standard errors of both: false-alarm rate 7e-6 a comparison.
void expect_equal(double a, double a_error, double b, double b_error) {
  EXPECT_LE(std::abs(a - b), 4.5 * std::hypot(a_error, b_error) + 1e-14);
}

// On the manifold m_h = m~, R = r1 I + r2 11^T, b_h = b~ the gradient has the same form.
TEST(Lemmas, A1UnspecialisedManifoldIsInvariant) {
  for (const char* activation : kActivations) {
    SCOPED_TRACE(activation);
    const int H = 3, F = 2;
    const Problem problem(problem_options(activation, "flipping", 4, H, F));
    const auto engine = make_engine(problem, engine_options(200000, 1));
    Evaluation e;
    engine->evaluate(unspecialised(problem, Eigen::Vector2d(0.7, -0.4), 0.8, 0.2, 0.3, 1.1),
                     {.gradient_error = true, .second_moment = false}, e);
    for (int h = 1; h < H; ++h) {
      for (int f = 0; f < F; ++f) {
        expect_equal(e.grad.m(h, f), e.grad_error.m(h, f), e.grad.m(0, f), e.grad_error.m(0, f));
      }
      if (e.grad.blocks.has("b")) {
        const auto b = e.grad["b"], error = e.grad_error["b"];
        expect_equal(b[h], error[h], b[0], error[0]);
      }
      expect_equal(e.grad.R(h, h), e.grad_error.R(h, h), e.grad.R(0, 0), e.grad_error.R(0, 0));
      for (int k = 0; k < h; ++k) {
        expect_equal(e.grad.R(h, k), e.grad_error.R(h, k), e.grad.R(0, 1), e.grad_error.R(0, 1));
        expect_equal(e.grad.R(k, h), e.grad_error.R(k, h), e.grad.R(0, 1), e.grad_error.R(0, 1));
      }
    }
  }
}

// With m_h = x E theta for all heads, grad_{m_h} E = -c E theta, and c > 0 at initialisation.
TEST(Lemmas, A2GradientPointsAlongTheMean) {
  for (const char* activation : kActivations) {
    for (const double x : {0.0, 0.5}) {
      SCOPED_TRACE(fmt::format("{} x {}", activation, x));
      const int H = 3, F = 2;
      const Problem problem(problem_options(activation, "flipping", 4, H, F));
      const Vector mean = problem.prior().mean();
      const auto engine = make_engine(problem, engine_options(200000, 2));
      Evaluation e;
      engine->evaluate(unspecialised(problem, x * mean, 1.0, 0.0, 0.0, 1.0),
                       {.gradient_error = true, .second_moment = false}, e);
      for (int h = 0; h < H; ++h) {
        expect_equal(e.grad.m(h, 1), e.grad_error.m(h, 1), 0.0, 0.0);  // E theta = (sqrt nu, 0)
        if (x == 0.0) {
          EXPECT_LT(e.grad.m(h, 0), -20 * e.grad_error.m(h, 0));
        }
      }
    }
  }
}

// grad_R E = 0 at R = 0 because E depends on R R^T only. With samples (not expectations) the
// gradient is E[g xi^T], zero within its error.
TEST(Lemmas, A3GradientInRVanishesAtZero) {
  for (const char* activation : kActivations) {
    SCOPED_TRACE(activation);
    const Problem problem(problem_options(activation, "gaussian", 5, 3, 2));
    const auto engine = make_engine(problem, engine_options(200000, 3));
    Point point = testing::random_point(problem, 31);
    point.R.setZero();
    Evaluation e;
    engine->evaluate(point, {.gradient_error = true, .second_moment = false}, e);
    for (int h = 0; h < 3; ++h) {
      for (int k = 0; k < 3; ++k) expect_equal(e.grad.R(h, k), e.grad_error.R(h, k), 0.0, 0.0);
    }
  }
}

// softmax-1 at m = R = 0: closed forms in b and v, exact because nothing is random there.
TEST(Lemmas, A4BiasAndScaleAtTheOrigin) {
  for (const int L : {1, 2, 5, 20}) {
    for (const int H : {1, 4}) {
      const Problem problem(problem_options("softmax-1", "flipping", L, H, 2));
      const auto engine = make_engine(problem, engine_options(64, 4));
      for (const double b : {-2.0, 0.0, 1.5}) {
        const double Z = L + std::exp(b);
        for (const double v : {0.5, 1.0, Z / L}) {
          SCOPED_TRACE(fmt::format("L {} H {} b {} v {}", L, H, b, v));
          Evaluation e;
          engine->evaluate(unspecialised(problem, Vector::Zero(2), 0, 0, b, v),
                           {.gradient_error = true, .second_moment = false}, e);
          const double excess = L * v / Z - 1.0;
          for (int h = 0; h < H; ++h) {
            EXPECT_NEAR(e.grad["b"][h], -2 * excess * (v / H) * std::exp(b) / (Z * Z), 1e-14);
          }
          EXPECT_NEAR(e.grad["v"][0], 2 * excess / Z, 1e-14);
          EXPECT_LE(e.loss_error, 1e-7);  // rounding of a variance that is zero
        }
      }
    }
  }
}

// The fixed points L v = L + e^b attract: the derivative of the velocity along (b, v) is negative.
TEST(Lemmas, A4FixedPointsAttract) {
  const int L = 5, H = 2;
  const Problem problem(problem_options("softmax-1", "flipping", L, H, 2));
  const auto engine = make_engine(problem, engine_options(64, 4));
  const double b = 0.4, v = (L + std::exp(b)) / L;
  for (const double shift : {-1e-3, 1e-3}) {
    Evaluation e;
    engine->evaluate(unspecialised(problem, Vector::Zero(2), 0, 0, b, v + shift), {}, e);
    EXPECT_GT(e.grad["v"][0] * shift, 0.0);
    engine->evaluate(unspecialised(problem, Vector::Zero(2), 0, 0, b + shift, v), {}, e);
    EXPECT_GT(e.grad["b"][0] * shift, 0.0);
  }
}

}  // namespace
}  // namespace headflow::lemmas_test
