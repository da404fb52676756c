#include "dynamics/integrator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace headflow::integrator_test {
namespace {

// y' = -y^2 + ..., coupled and with a closed form: a damped rotation in the logarithm,
//   y1' = -0.2 y1 - y2,  y2' = y1 - 0.2 y2  =>  y = e^{-0.2 t} (cos t, sin t).
bool rotation(const double* y, double* out) {
  out[0] = -0.2 * y[0] - y[1];
  out[1] = y[0] - 0.2 * y[1];
  return true;
}

double error_at(double time, const double* y) {
  const double decay = std::exp(-0.2 * time);
  return std::hypot(y[0] - decay * std::cos(time), y[1] - decay * std::sin(time));
}

struct RunResult {
  double error;
  std::int64_t steps;
};

RunResult run(Integrator& integrator, double time) {
  RunResult out{0, 0};
  while (integrator.time() < time) {
    EXPECT_TRUE(integrator.advance());
    ++out.steps;
  }
  double y[2];
  integrator.state(time, y);
  out.error = error_at(time, y);
  return out;
}

/// Slope of log y against log x by least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const Vector X = Eigen::Map<const Vector>(x.data(), Eigen::Index(x.size())).array().log();
  const Vector Y = Eigen::Map<const Vector>(y.data(), Eigen::Index(y.size())).array().log();
  const Vector dx = X.array() - X.mean();
  return dx.dot(Y) / dx.squaredNorm();
}

const Vector kStart = Eigen::Vector2d(1.0, 0.0);

TEST(Integrator, EulerHasOrderOne) {
  std::vector<double> steps, errors;
  for (const double h : {0.02, 0.01, 0.005, 0.0025}) {
    const auto euler = make_euler(rotation, kStart, h, {});
    steps.push_back(h);
    errors.push_back(run(*euler, 5.0).error);
  }
  EXPECT_NEAR(slope(steps, errors), 1.0, 0.03);
}

TEST(Integrator, ExplicitHasOrderFour) {
  std::vector<double> steps, errors;
  for (const double tolerance : {1e-6, 1e-7, 1e-8, 1e-9, 1e-10}) {
    const auto integrator = make_explicit(rotation, kStart, tolerance, tolerance * 1e-2);
    const RunResult result = run(*integrator, 20.0);
    steps.push_back(1.0 / static_cast<double>(result.steps));
    errors.push_back(result.error);
    EXPECT_LT(result.error, 100 * tolerance);
  }
  EXPECT_NEAR(slope(steps, errors), 4.0, 0.6);
}

TEST(Integrator, ImplicitFollowsItsTolerance) {
  std::vector<double> tolerances, errors;
  for (const double tolerance : {1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}) {
    const auto integrator = make_implicit(rotation, kStart, tolerance, tolerance * 1e-2);
    const RunResult result = run(*integrator, 20.0);
    tolerances.push_back(tolerance);
    errors.push_back(result.error);
    EXPECT_LT(result.error, 200 * tolerance);
  }
  EXPECT_NEAR(slope(tolerances, errors), 1.0, 0.2);
}

// Stiff decay with rates 1 and 10^5: the implicit method must not be held to the fast one.
TEST(Integrator, ImplicitTakesLongStepsOnStiffProblems) {
  const Field stiff = [](const double* y, double* out) {
    out[0] = -y[0];
    out[1] = -1e5 * (y[1] - y[0]);
    return true;
  };
  const auto integrator = make_implicit(stiff, kStart, 1e-6, 1e-8);
  std::int64_t steps = 0;
  while (integrator->time() < 10.0 && ++steps < 100000) ASSERT_TRUE(integrator->advance());
  EXPECT_LT(steps, 400);
}

TEST(Integrator, DenseOutputDoesNotDisturbTheSteps) {
  const auto make = [](int kind) {
    if (kind == 0) return make_euler(rotation, kStart, 0.01, {});
    if (kind == 1) return make_explicit(rotation, kStart, 1e-8, 1e-10);
    return make_implicit(rotation, kStart, 1e-8, 1e-10);
  };
  for (int kind = 0; kind < 3; ++kind) {
    const auto plain = make(kind), asked = make(kind);
    double y[2], z[2];
    for (int i = 0; i < 50; ++i) {
      const double before = asked->time();
      ASSERT_TRUE(plain->advance());
      ASSERT_TRUE(asked->advance());
      for (const double part : {0.1, 0.5, 0.9}) {
        const double time = before + part * (asked->time() - before);
        asked->state(time, y);
        if (kind > 0) {
          EXPECT_LT(error_at(time, y), 1e-5);
        }
      }
      asked->speed();
    }
    plain->state(plain->time(), y);
    asked->state(asked->time(), z);
    EXPECT_EQ(plain->time(), asked->time());
    EXPECT_EQ(y[0], z[0]);
    EXPECT_EQ(y[1], z[1]);
  }
}

TEST(Integrator, SpeedIsTheNormOfTheVelocity) {
  for (const auto& integrator : {make_explicit(rotation, kStart, 1e-9, 1e-11).release(),
                                 make_implicit(rotation, kStart, 1e-9, 1e-11).release()}) {
    const std::unique_ptr<Integrator> owner(integrator);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(integrator->advance());
    EXPECT_NEAR(integrator->speed(), std::sqrt(1.04) * std::exp(-0.2 * integrator->time()), 1e-3);
  }
}

TEST(Integrator, AFieldThatIsNotFiniteIsReported) {
  const Field wall = [](const double* y, double* out) {
    out[0] = 1.0;
    out[1] = 0.0;
    return y[0] < 1.5;
  };
  for (int kind = 0; kind < 3; ++kind) {
    const auto integrator = kind == 0   ? make_euler(wall, kStart, 0.01, {})
                            : kind == 1 ? make_explicit(wall, kStart, 1e-6, 1e-8)
                                        : make_implicit(wall, kStart, 1e-6, 1e-8);
    bool good = true;
    for (int i = 0; i < 10000 && good; ++i) good = integrator->advance();
    EXPECT_FALSE(good);
    EXPECT_FALSE(integrator->why().empty());
    double y[2];
    integrator->state(integrator->time(), y);
    EXPECT_TRUE(std::isfinite(y[0]));
  }
}

}  // namespace
}  // namespace headflow::integrator_test
