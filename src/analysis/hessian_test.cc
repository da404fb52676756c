// Hessians against differences of gradients and against the closed forms at the origin; symmetries.

#include "analysis/hessian.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/problems.h"
#include "support/random_problems.h"
#include "theory/origin.h"

namespace headflow::hessian_test {
namespace {

using testing::flatten;

std::unique_ptr<Engine> factorised(const Problem& problem, double tolerance, const Point& point) {
  EngineOptions options;
  options.engine = EngineName::factorised;
  options.tolerance = tolerance;
  auto engine = make_engine(problem, options);
  engine->adapt(point);
  return engine;
}

TEST(Hessian, AgreesWithDifferencesOfGradients) {
  for (const char* activation : testing::kAllActivations) {
    SCOPED_TRACE(activation);
    testing::Draw draw(3);
    const Problem problem(testing::random_options(activation, "full", 5, 2, 2, draw));
    const Point point = testing::random_heads(problem, 0.7, 0.5, draw);
    const auto engine = factorised(problem, 1e-10, point);
    const Hessian h = hessian(*engine, point);
    EXPECT_LE(h.asymmetry, 1e-8);
    constexpr double step = 5e-3;
    for (std::size_t i = 0; i < h.coordinates.size(); ++i) {
      Vector difference = Vector::Zero(point.size());
      for (const auto& [k, weight] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
        Vector x = flatten(point);
        x[h.coordinates[i]] += k * step;
        Point there = point;
        there.unpack(x.data());
        Evaluation e;
        engine->evaluate(there, {.loss_error = false}, e);
        difference += weight / (12 * step) * flatten(e.grad);
      }
      for (std::size_t j = 0; j < h.coordinates.size(); ++j) {
        EXPECT_NEAR(difference[h.coordinates[j]],
                    h.matrix(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)), 1e-7);
      }
    }
  }
}

// Every eigenvalue in m and R, with its multiplicity.
TEST(Hessian, ClosedFormsAtTheOrigin) {
  for (const char* activation : testing::kAllActivations) {
    for (const int L : {2, 3, 10, 1000}) {
      for (const double b : {0.0, 0.7}) {
        for (const int H : {1, 2, 4}) {
          SCOPED_TRACE(fmt::format("{} L {} H {} b {}", activation, L, H, b));
          ProblemOptions options = testing::problem_options(activation, "gaussian", L, H, 2);
          options.prior_parameters["nu"] = testing::row({3.0, 1.0});
          const Problem problem(options);
          Blocks blocks = problem.start_point().blocks;
          if (blocks.has("b")) blocks["b"].setConstant(b);
          const Point point = origin(problem, blocks);
          EXPECT_TRUE(is_origin(problem, point));
          const auto engine = factorised(problem, 1e-9, point);
          const Hessian h = hessian(*engine, point);
          std::vector<double> want, got;
          for (const OriginMode& mode : origin_modes(problem, point)) {
            want.insert(want.end(), static_cast<std::size_t>(mode.multiplicity), mode.eigenvalue);
          }
          const Eigen::Index n = 2 * H + H * H;
          const SymmetricEigen solver(h.matrix.topLeftCorner(n, n));
          got.assign(solver.eigenvalues().begin(), solver.eigenvalues().end());
          std::sort(want.begin(), want.end());
          ASSERT_EQ(want.size(), got.size());
          for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6);
        }
      }
    }
  }
}

TEST(Hessian, ModesInWords) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 4, 3, 2));
  Point mode = problem.zero_point();
  mode.m.col(1) << 1, -1, 0;
  EXPECT_EQ(mode_shape(mode).text(), "m, across heads, feature 2");
  mode.m << 1, 1, 1, 1, 1, 1;
  EXPECT_EQ(mode_shape(mode).text(), "m, all heads alike, direction (0.71, 0.71)");
  mode.m.setZero();
  mode.R.row(0) << 1, 0, 0;
  mode.R.row(1) << -1, 0, 0;
  EXPECT_EQ(mode_shape(mode).text(), "R, across heads");
  mode.R.setZero();
  mode["v"][0] = 1;
  EXPECT_EQ(mode_shape(mode).text(), "v");
}

// At R = 0 the columns of R are alike, and differences see what exact derivatives see.
TEST(Hessian, WithoutR) {
  for (const char* activation : testing::kAllActivations) {
    SCOPED_TRACE(activation);
    testing::Draw draw(5);
    const Problem problem(testing::random_options(activation, "full", 5, 3, 2, draw));
    Point point = testing::random_heads(problem, 0.7, 0.0, draw);
    point.R.setZero();
    const Matrix at_zero = hessian(*factorised(problem, 1e-10, point), point).matrix;
    point.R(1, 1) = 1e-9;  // nothing, but every product is then taken
    const auto engine = factorised(problem, 1e-10, point);
    EXPECT_LE((hessian(*engine, point).matrix - at_zero).cwiseAbs().maxCoeff(), 1e-7);
    if (std::holds_alternative<JointlyNormalised>(problem.activation().factorisation())) continue;
    const Matrix differences = hessian(*engine, point, SecondDerivatives::differences).matrix;
    EXPECT_LE((differences - at_zero).cwiseAbs().maxCoeff(), 1e-7);
  }
}

}  // namespace
}  // namespace headflow::hessian_test
