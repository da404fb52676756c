#include "dynamics/flow_field.h"

#include <gtest/gtest.h>

#include "expectation/engine.h"
#include "support/problems.h"

namespace headflow::flow_field_test {
namespace {

Matrix slopes_of(FlowField& field, const Vector& y) {
  const auto n = y.size();
  Eigen::MatrixXd columns(n, n);
  EXPECT_TRUE(field.slopes()(y.data(), columns.data()));
  return columns;
}

Matrix differences_of(FlowField& field, const Vector& y) {
  const auto n = y.size();
  Matrix out(n, n);
  Vector moved = y, up(n), down(n);
  constexpr double kStep = 1e-5;
  for (Eigen::Index j = 0; j < n; ++j) {
    moved[j] = y[j] + kStep;
    EXPECT_TRUE(field(moved.data(), up.data()));
    moved[j] = y[j] - kStep;
    EXPECT_TRUE(field(moved.data(), down.data()));
    moved[j] = y[j];
    out.col(j) = (up - down) / (2 * kStep);
  }
  return out;
}

// Newton's method of the implicit integrator is given these. With next to no noise and steps the
// field is what they are slopes of; at a rate of one it is another field, and they are not (the
// control).
TEST(FlowField, SlopesAreThoseWithoutNoiseAndSteps) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    const Problem problem(testing::problem_options(activation, "gaussian", 4, 2, 2));
    const Point point = testing::random_point(problem, 5, 0.7);
    FlowOptions options;
    options.integrator = Scheme::first_order;
    for (const double kappa : {0.0, 1e-200}) {
      options.kappa = kappa;
      EngineOptions how;
      how.engine = EngineName::factorised;
      how.tolerance = 1e-6;
      how.samples = 64;
      const auto engine = make_flow_engine(problem, how, options, point);
      engine->adapt(point);
      const auto lack_of = [&](double rate) {
        options.step = rate;
        FlowField field(*engine, options);
        const Vector y = field.pack(point);
        return (slopes_of(field, y) - differences_of(field, y)).cwiseAbs().maxCoeff();
      };
      EXPECT_LT(lack_of(1e-9), 1e-5) << activation << " kappa " << kappa;
      EXPECT_GT(lack_of(1.0), 1e-3) << activation << " kappa " << kappa;
    }
  }
}

// Where the engine has all second derivatives they are used as they are.
TEST(FlowField, SlopesOfGradientFlowAreTheHessian) {
  const Problem problem(testing::problem_options("softmax", "gaussian", 4, 6, 2));
  const Point point = testing::random_point(problem, 5, 0.7);
  EngineOptions how;
  how.engine = EngineName::factorised;
  how.tolerance = 1e-6;
  FlowOptions options;
  options.integrator = Scheme::implicit;
  const auto engine = make_flow_engine(problem, how, options, point);
  engine->adapt(point);
  ASSERT_NE(engine->whole_hessian(), WholeHessian::none);
  FlowField field(*engine, options);
  const Vector y = field.pack(point);
  EXPECT_LT((slopes_of(field, y) - differences_of(field, y)).cwiseAbs().maxCoeff(), 1e-5);
}

}  // namespace
}  // namespace headflow::flow_field_test
