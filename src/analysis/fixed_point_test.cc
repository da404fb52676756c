// Where training ends: minima, saddles, flat directions, and the Bayes risk.

#include "analysis/fixed_point.h"

#include <gtest/gtest.h>

#include "support/effort.h"
#include "support/problems.h"
#include "support/stop.h"
#include "theory/bayes.h"

namespace headflow::fixed_point_test {
namespace {

EngineOptions one_thread() {
  EngineOptions options;
  return options;
}

void expect_minimum(const FixedPoint& found) {
  EXPECT_TRUE(found.converged) << found.message;
  EXPECT_LT(found.gradient_norm, 1e-8);
  EXPECT_EQ(found.index, 0);
  EXPECT_EQ(found.stability, Stability::minimum);
  EXPECT_LT(found.loss_error, 1e-8);
}

// From any start near the paper's; the slope is checked by an engine of its own.
TEST(FixedPoint, IsAMinimum) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 4, 2, 2));
  double loss = 0;
  for (const std::uint64_t seed : {1, 2}) {
    const FixedPoint found =
        find_fixed_point(problem, one_thread(), initial_point(problem, 0.01, seed), {});
    expect_minimum(found);
    EngineOptions exact = one_thread();
    exact.tolerance = 1e-11;
    Evaluation e;
    make_engine(problem, exact, {&found.point})->evaluate(found.point, {}, e);
    EXPECT_LT(e.grad.norm(), 1e-8);
    EXPECT_NEAR(e.loss, found.loss, found.loss_error + 1e-10);
    if (seed == 1) loss = found.loss;
    EXPECT_NEAR(found.loss, loss, 1e-9);
  }
}

// Two heads on the two atoms: B-softmax is Bayes optimal there.
TEST(FixedPoint, OfBayesSoftmaxIsTheBayesRisk) {
  const Problem problem(testing::problem_options("b-softmax", "flipping", 4, 2, 2));
  const FixedPoint found =
      find_fixed_point(problem, one_thread(), initial_point(problem, 0.01, 1), {});
  expect_minimum(found);
  EXPECT_EQ(found.symmetries, 1);
  EXPECT_GE(found.zero_modes, 1) << "a common shift of the biases";
  EXPECT_NEAR(found.loss, bayes_risk(problem, {.tolerance = 1e-10}).risk, 1e-8);
}

// Three heads on two atoms: still the Bayes risk, and directions along which nothing changes.
TEST(FixedPoint, WithMoreHeadsThanNeeded) {
  const Problem problem(testing::problem_options("b-softmax", "flipping", 4, 3, 2));
  const FixedPoint found =
      find_fixed_point(problem, one_thread(), initial_point(problem, 0.01, 1), {});
  EXPECT_TRUE(found.converged) << found.message;
  EXPECT_EQ(found.index, 0);
  EXPECT_GE(found.zero_modes, 2);
  EXPECT_NEAR(found.loss, bayes_risk(problem, {.tolerance = 1e-10}).risk, 1e-7);
}

// Equal heads stay equal: their flow ends at a saddle, which is found and recognised. The smallest
// difference between them grows, and the flow leaves.
TEST(FixedPoint, SaddlesAreRecognised) {
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  Point equal = problem.zero_point();
  equal.m.col(0).setConstant(0.3);
  const FixedPoint saddle = find_fixed_point(problem, one_thread(), equal, {});
  EXPECT_TRUE(saddle.converged) << saddle.message;
  EXPECT_EQ(saddle.index, 1);
  EXPECT_EQ(saddle.stability, Stability::saddle);
  EXPECT_GT(saddle.escape_rate, 1e-3);
  for (const double difference : {1e-5, 1e-7}) {
    if (testing::left_out(difference < 1e-6 ? 1 : 0, 2)) continue;
    equal.m(0, 1) = difference;
    const FixedPoint end = find_fixed_point(problem, one_thread(), equal, {});
    expect_minimum(end);
    EXPECT_LT(end.loss, saddle.loss - 1e-3);
    EXPECT_GT(end.time, saddle.time);
  }
}

// Without a mean of the prior nothing moves m = R = 0: a saddle with heads that are not used.
TEST(FixedPoint, UnusedHeads) {
  const Problem problem(testing::problem_options("softmax", "gaussian", 4, 2, 1));
  const Point start = problem.zero_point();
  const FixedPoint found = find_fixed_point(problem, one_thread(), start, {});
  EXPECT_TRUE(found.converged) << found.message;
  EXPECT_EQ(found.unused_heads, 2);
  EXPECT_EQ(found.stability, Stability::saddle);
  EXPECT_NEAR(found.loss, 0.75, 1e-9);  // 1 - 1/L
}

// Without time to arrive: the loss and the gradient are those where the flow was.
TEST(FixedPoint, NotReached) {
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  const FixedPoint found = find_fixed_point(problem, one_thread(), initial_point(problem, 0.01, 1),
                                            {}, Context::until([] { return true; }));
  EXPECT_FALSE(found.converged);
  EXPECT_GT(found.loss, 0.1);
  EXPECT_GT(found.gradient_norm, 1e-6);
  // No Hessian was looked at: unknown, not a minimum of index 0.
  EXPECT_EQ(found.stability, Stability::unknown);
  EXPECT_FALSE(found.index || found.zero_modes || found.symmetries || found.unused_heads);
  for (const double x : {found.escape_rate, found.error, found.newton_distance}) {
    EXPECT_TRUE(std::isnan(x));
  }
  EXPECT_EQ(found.eigenvalues.size(), 0);
  EXPECT_FALSE(found.message.empty());
}

// Stopped from within an evaluation, at whatever moment: what was reached, and nothing that was not
// looked at; or Interrupted, if nothing was reached yet.
TEST(FixedPoint, Interrupted) {
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  std::atomic<int> asked = 0;
  EngineOptions engine = one_thread();
  engine.engine = EngineName::mc;  // asks at least once an evaluation
  engine.samples = 2000;
  for (const int allowed : {0, 100, 500}) {
    asked = 0;
    const auto find = [&] {
      return find_fixed_point(problem, engine, initial_point(problem, 0.01, 1), {},
                              testing::stopped_after(asked, allowed + 1));
    };
    if (allowed == 0) {
      EXPECT_THROW(find(), headflow::Interrupted);
      continue;
    }
    const FixedPoint found = find();
    ASSERT_GT(asked, allowed) << "it must have been stopped";
    EXPECT_FALSE(found.converged);
    EXPECT_EQ(found.stability, Stability::unknown);
    EXPECT_TRUE(found.point.all_finite());
    EXPECT_NE(found.message.find("interrupted"), std::string::npos) << found.message;
  }
}

}  // namespace
}  // namespace headflow::fixed_point_test
