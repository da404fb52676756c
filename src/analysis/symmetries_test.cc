#include "analysis/symmetries.h"

#include <gtest/gtest.h>

#include "analysis/hessian.h"
#include "support/problems.h"
#include "support/random_problems.h"

namespace headflow::symmetries_test {
namespace {

std::unique_ptr<Engine> factorised(const Problem& problem, double tolerance, const Point& point) {
  EngineOptions options;
  options.engine = EngineName::factorised;
  options.tolerance = tolerance;
  auto engine = make_engine(problem, options, {&point, false});
  engine->adapt(point);
  return engine;
}

/// Largest slope along symmetries, and across them.
std::pair<double, double> slopes(const Problem& problem, const Point& point, double tolerance,
                                 Eigen::Index expected) {
  const auto engine = factorised(problem, tolerance, point);
  const Hessian h = hessian(*engine, point);
  const Matrix flat = symmetry_directions(problem, point, h.coordinates);
  EXPECT_EQ(flat.cols(), expected);
  const Matrix one = Matrix::Identity(flat.cols(), flat.cols());
  EXPECT_LE((flat.transpose() * flat - one).cwiseAbs().maxCoeff(), 1e-12);
  Evaluation e;
  engine->evaluate(point, {}, e);
  const Vector gradient = e.grad.packed()(h.coordinates);
  const Vector along = flat.transpose() * gradient;
  return {along.cwiseAbs().maxCoeff(), (gradient - flat * along).cwiseAbs().maxCoeff()};
}

// The loss has no slope along its symmetries.
TEST(Symmetries, AreFlat) {
  testing::Draw draw(4);
  const Problem problem(testing::problem_options("b-softmax", "flipping", 4, 3, 2));
  const Point point = testing::random_heads(problem, 0.7, 0.8, draw);
  const auto [along, across] = slopes(problem, point, 1e-8, 4);  // three rotations, one shift
  EXPECT_LE(along, 1e-7);
  EXPECT_GE(across, 1e-3);
}

// Features may be turned where the prior does not notice.
TEST(Symmetries, OfTheFeatures) {
  const auto count = [](const Matrix& nu) {
    ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, 2, 4);
    options.prior_parameters = {{"nu", nu}};
    return feature_rotations(Problem(options).prior()).size();
  };
  EXPECT_EQ(count(Matrix{{10.0}}), 6U);
  EXPECT_EQ(count(Matrix{{8.0, 2.0}}), 0U);
  ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, 2, 3);
  Matrix covariance = Vector{{2.0, 2.0, 5.0}}.asDiagonal();
  options.prior_parameters = {{"covariance", covariance}};
  EXPECT_EQ(feature_rotations(Problem(options).prior()).size(), 1U);
  options.prior_parameters["mean"] = Matrix{{0.3, 0.0, 0.0}};  // singles out a direction of the two
  EXPECT_EQ(feature_rotations(Problem(options).prior()).size(), 0U);
  options.prior_parameters["mean"] = Matrix{{0.0, 0.0, 0.3}};
  EXPECT_EQ(feature_rotations(Problem(options).prior()).size(), 1U);
}

// Quasi-random nodes have errors of 1e-4 here, but hardly any along symmetries: what is left is of
// the size of epsilon (path_gauge.h) times the error.
TEST(Symmetries, ArePartOfTheNodes) {
  testing::Draw draw(4);
  ProblemOptions options = testing::problem_options("b-softmax", "gaussian", 5, 6, 3);
  options.prior_parameters = {{"nu", Matrix{{5.0}}}};
  const Problem problem(options);
  const Point point = testing::random_heads(problem, 1.0, 0.6, draw);
  const auto [along, across] = slopes(problem, point, 1e-3, 15 + 3 + 1);
  EXPECT_LE(along, 3e-6);
  EXPECT_GE(across, 1e-2);
  const auto rough = factorised(problem, 1e-3, point);
  EXPECT_TRUE(rough->quasi_random());
  Evaluation e;
  rough->evaluate(point, {.gradient_error = true}, e);
  EXPECT_GE(e.grad_error.max(), 1e-4);  // or the first line would say nothing
}

}  // namespace
}  // namespace headflow::symmetries_test
