#include "model/frame.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "core/error.h"
#include "support/problems.h"

namespace headflow::frame_test {
namespace {

using testing::flatten;
using testing::problem_options;

Matrix some_p() {
  Matrix p(3, 3);
  p << 1.2, 0.3, -0.1, 0.3, 0.8, 0.2, -0.1, 0.2, 1.0;
  return p;
}

/// Of three features and two heads, with b and v.
Point some_point(unsigned seed) {
  return testing::random_point(Problem(problem_options("softmax-1", "full", 4, 2, 3)), seed);
}

TEST(Frame, PassesThroughAreInverse) {
  const Frame frame(some_p(), 3);
  EXPECT_FALSE(frame.is_identity());
  EXPECT_TRUE((frame.root() * frame.root()).isApprox(some_p()));
  EXPECT_TRUE(frame.root().isApprox(frame.root().transpose()));
  const Point outside = some_point(1), inside = frame.enter(outside);
  EXPECT_TRUE(flatten(frame.leave(inside)).isApprox(flatten(outside)));
  // Overlaps of the heads' parts within the span of the hidden directions.
  EXPECT_TRUE((inside.m * inside.m.transpose())
                  .isApprox(outside.m * some_p().inverse() * outside.m.transpose()));
  EXPECT_EQ(inside.R, outside.R);
}

// A direction dm outside is dm p^(-1/2) inside: the slope along it is the same number.
TEST(Frame, GradientsFollowTheChainRule) {
  const Frame frame(some_p(), 3);
  const Point gradient = some_point(2), direction = some_point(3);
  EXPECT_NEAR(flatten(frame.leave_gradient(gradient)).dot(flatten(direction)),
              flatten(gradient).dot(flatten(frame.enter(direction))), 1e-13);
  Point error = Point::zero_like(gradient);
  error.m.setConstant(1e-3);
  Point moved = gradient;
  moved.m(0, 0) += 1e-3, moved.m(0, 1) -= 1e-3, moved.m(1, 2) += 1e-3;
  const Matrix change = frame.leave_gradient(moved).m - frame.leave_gradient(gradient).m;
  EXPECT_TRUE((change.cwiseAbs().array() <= frame.leave_gradient_error(error).m.array()).all());
}

TEST(Frame, ThePriorHasTheCovarianceOfTheSignal) {
  for (const char* prior : {"flipping", "full", "discrete", "mixture"}) {
    ProblemOptions options = problem_options("softmax", prior, 4, 2, 3);
    const Problem plain(options);
    options.p = some_p();
    const Problem problem(options);
    EXPECT_TRUE(problem.prior().mean().isApprox(problem.p_root() * plain.prior().mean()));
    EXPECT_TRUE(problem.prior().covariance().isApprox(
        problem.p_root() * plain.prior().covariance() * problem.p_root(), 1e-10));
  }
}

TEST(Frame, TheIdentityChangesNoBit) {
  for (const char* prior : {"full", "mixture"}) {
    ProblemOptions options = problem_options("softmax-1", prior, 4, 2, 3);
    const Problem plain(options);
    EXPECT_EQ(plain.p(), Matrix(Matrix::Identity(3, 3)));
    options.p = Matrix::Identity(3, 3);
    const Problem problem(options);
    EXPECT_TRUE(problem.frame().is_identity());
    EXPECT_EQ(problem.prior().mean(), plain.prior().mean());
    EXPECT_EQ(problem.prior().covariance(), plain.prior().covariance());
    const Point point = testing::random_point(problem, 1);
    for (const Point& same :
         {problem.frame().enter(point), problem.frame().leave(point),
          problem.frame().leave_gradient(point), problem.frame().leave_gradient_error(point)}) {
      EXPECT_EQ(flatten(same), flatten(point));
    }
  }
}

TEST(Frame, RulesAreChecked) {
  const auto complaint = [](const Matrix& p) {
    try {
      const Frame frame(p, 2);
    } catch (const OptionError& e) {
      EXPECT_EQ(e.key(), "problem.p");
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  const auto two = [](double a, double b, double c, double d) {
    Matrix p(2, 2);
    p << a, b, c, d;
    return p;
  };
  EXPECT_EQ(complaint(Matrix::Constant(1, 1, 2.0)),
            "problem.p = 2: must be a 2 x 2 matrix, as features = 2");
  EXPECT_EQ(complaint(two(1, 0.5, 0.4, 1)), "problem.p = [[1, 0.5], [0.4, 1]]: must be symmetric");
  EXPECT_EQ(complaint(two(1, 2, 2, 1)),
            "problem.p = [[1, 2], [2, 1]]: must be positive definite (its smallest eigenvalue is "
            "-1)");
  EXPECT_NE(complaint(two(1, 1, 1, 1)).find("positive definite"), std::string::npos);
  EXPECT_NE(complaint(two(1, NAN, NAN, 1)).find("finite"), std::string::npos);
  EXPECT_EQ(complaint(two(1, 0.5, 0.5, 2)), "accepted");
}

}  // namespace
}  // namespace headflow::frame_test
