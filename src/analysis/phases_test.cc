#include "analysis/phases.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"

namespace headflow::phases_test {
namespace {

TEST(Phases, CrossingOfAnExponentialIsExact) {
  std::vector<double> time, value;
  for (int i = 0; i <= 10; ++i) {
    time.push_back(i);
    value.push_back(1e-3 * std::exp(0.7 * i));
  }
  EXPECT_NEAR(first_crossing(time, value, 0.1), std::log(100) / 0.7, 1e-12);
  EXPECT_EQ(first_crossing(time, value, 1e-4), 0);
  EXPECT_TRUE(std::isnan(first_crossing(time, value, 100)));
}

/// Head 0 goes to one side of feature 0 and then to the other; head 1 stays; feature 1 is late.
Trajectory two_heads() {
  Trajectory run;
  for (int i = 0; i <= 100; ++i) {
    const double t = 0.1 * i;
    Point point{Matrix::Zero(2, 2), Matrix::Zero(2, 2), {}};
    point.m(0, 0) = t < 5 ? t : 10 - t - (t - 5);
    point.m(1, 0) = -t;
    point.m(0, 1) = t < 6 ? 0 : t - 6;
    point.m(1, 1) = -point.m(0, 1);
    run.time.push_back(t);
    run.point.push_back(point);
  }
  return run;
}

TEST(Phases, OfAMadeUpRun) {
  const Trajectory run = two_heads();
  const Matrix directions = Matrix::Identity(2, 2);
  EXPECT_EQ(excursions(run, directions.col(0), 0.5), 1);
  EXPECT_EQ(excursions(run, directions.col(1), 0.5), 0);
  const std::vector<double> times = specialisation_times(run, directions);
  EXPECT_NEAR(times[0], 2.5, 0.1);  // spread t up to 5, then falling
  EXPECT_NEAR(times[1], 8, 0.1);
  const auto signs = sign_patterns(run.point.back(), directions);
  EXPECT_EQ(signs[0], (std::vector<int>{-1, 1}));
  EXPECT_EQ(signs[1], (std::vector<int>{-1, -1}));
  EXPECT_TRUE(std::isnan(specialisation_times(run, directions, 100)[0]));
}

TEST(Phases, PrincipalDirectionsByVariance) {
  ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, 2, 2);
  Matrix covariance(2, 2);
  covariance << 2, 1, 1, 2;
  options.prior_parameters = {{"covariance", covariance}};
  const Matrix directions = principal_directions(Problem(options));
  EXPECT_NEAR(std::abs(directions.col(0).sum()), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(directions.col(1).sum(), 0, 1e-12);
}

}  // namespace
}  // namespace headflow::phases_test
