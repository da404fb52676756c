#include "analysis/pruning.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"

namespace headflow::pruning_test {
namespace {

EngineOptions one_thread() {
  EngineOptions options = testing::engine_options(0, 1);
  options.tolerance = 1e-7;
  return options;
}

// Rescaled softmax is softmax with fewer heads: the mean over the heads left.
TEST(Pruning, KeepsTheOverlapsOfTheHeadsLeft) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 5, 4, 2));
  const Point point = testing::random_point(problem, 3);
  const Point left = with_heads(point, {0, 2, 3});
  const Matrix q = point.q();
  EXPECT_NEAR(left.q()(0, 1), q(0, 2), 1e-12);
  EXPECT_NEAR(left.q()(1, 2), q(2, 3), 1e-12);
  EXPECT_NEAR(left.q()(2, 2), q(3, 3), 1e-12);
  EXPECT_EQ(left["b"][1], point["b"][2]);
  EXPECT_EQ(left["v"], point["v"]);
  EXPECT_EQ(left.m.row(2), point.m.row(3));
}

// Two heads on the two points of a flipping spike, B-softmax, and two that repeat them: the
// repetitions go first and for free, and every step is the best one there is.
TEST(Pruning, RepeatedHeadsGoFirst) {
  const Problem problem(testing::problem_options("b-softmax", "flipping", 5, 4, 2));
  Point point = problem.zero_point();
  const double a = std::sqrt(2.0);
  point.m << a, a, a, -a, a, a, a, -a;
  const std::vector<PruningStep> steps = prune(problem, point, one_thread());
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].removed, -1);
  EXPECT_NEAR(steps[2].loss, steps[0].loss, 1e-6);
  EXPECT_GT(steps[3].loss, steps[0].loss + 0.05);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double chosen = steps[i].instead[static_cast<std::size_t>(steps[i].removed)];
    EXPECT_EQ(chosen, steps[i].loss);
    for (const double other : steps[i].instead) {
      if (!std::isnan(other)) {
        EXPECT_GE(other, chosen);
      }
    }
  }
}

}  // namespace
}  // namespace headflow::pruning_test
