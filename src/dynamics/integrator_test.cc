#include "dynamics/integrator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "dynamics/portable.h"
#include "support/stop.h"

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

/// Those that choose their steps: of the library that it was built with, and those that need none.
struct Method {
  const char* name;
  std::function<std::unique_ptr<Integrator>(const Field&, const Vector&, double, double)> make;
};
const std::vector<Method> kExplicit = {{"explicit", make_explicit},
                                       {"Dormand-Prince", make_dormand_prince}};
const std::vector<Method> kImplicit = {
    {"implicit", [](auto&&... all) { return make_implicit(all...); }},
    {"BDF", [](auto&&... all) { return make_bdf(all...); }}};

const std::vector<Method> kPortable = {kExplicit[1], kImplicit[1]};

std::vector<Method> adaptive() {
  std::vector<Method> out = kExplicit;
  out.insert(out.end(), kImplicit.begin(), kImplicit.end());
  return out;
}

/// And one that does not.
std::vector<Method> all_methods() {
  std::vector<Method> out = adaptive();
  out.push_back({"Euler", [](const Field& field, const Vector& y0, double, double) {
                   return make_euler(field, y0, 0.01, {});
                 }});
  return out;
}

TEST(Integrator, EulerHasOrderOne) {
  std::vector<double> steps, errors;
  for (const double h : {0.02, 0.01, 0.005, 0.0025}) {
    const auto euler = make_euler(rotation, kStart, h, {});
    steps.push_back(h);
    errors.push_back(run(*euler, 5.0).error);
  }
  EXPECT_NEAR(slope(steps, errors), 1.0, 0.03);
}

TEST(Integrator, ExplicitHasItsOrder) {
  for (const Method& method : kExplicit) {
    SCOPED_TRACE(method.name);
    std::vector<double> steps, errors;
    int order = 0;
    for (const double tolerance : {1e-6, 1e-7, 1e-8, 1e-9, 1e-10}) {
      const auto integrator = method.make(rotation, kStart, tolerance, tolerance * 1e-2);
      const RunResult result = run(*integrator, 20.0);
      steps.push_back(1.0 / static_cast<double>(result.steps));
      errors.push_back(result.error);
      EXPECT_LT(result.error, 100 * tolerance);
      order = integrator->order();
    }
    EXPECT_GE(order, 4);
    EXPECT_NEAR(slope(steps, errors), order, 0.6);
  }
}

TEST(Integrator, ImplicitFollowsItsTolerance) {
  for (const Method& method : kImplicit) {
    SCOPED_TRACE(method.name);
    std::vector<double> tolerances, errors;
    for (const double tolerance : {1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}) {
      const auto integrator = method.make(rotation, kStart, tolerance, tolerance * 1e-2);
      const RunResult result = run(*integrator, 20.0);
      tolerances.push_back(tolerance);
      errors.push_back(result.error);
      EXPECT_LT(result.error, 200 * tolerance);
    }
    EXPECT_NEAR(slope(tolerances, errors), 1.0, 0.2);
  }
}

// Stiff decay with rates 1 and 10^5: the implicit method must not be held to the fast one.
TEST(Integrator, ImplicitTakesLongStepsOnStiffProblems) {
  for (const Method& method : kImplicit) {
    SCOPED_TRACE(method.name);
    std::int64_t evaluations = 0;
    const Field stiff = [&](const double* y, double* out) {
      ++evaluations;
      out[0] = -y[0];
      out[1] = -1e5 * (y[1] - y[0]);
      return true;
    };
    const auto integrator = method.make(stiff, kStart, 1e-6, 1e-8);
    std::int64_t steps = 0;
    while (integrator->time() < 10.0 && ++steps < 100000) ASSERT_TRUE(integrator->advance());
    EXPECT_LT(steps, 400);
    EXPECT_LT(evaluations, 2 * steps);
    double y[2];
    integrator->state(10.0, y);
    EXPECT_NEAR(y[0], std::exp(-10.0), 1e-7);
    EXPECT_NEAR(y[1], std::exp(-10.0), 1e-7);
    while (integrator->time() < 1e8 && ++steps < 100000) ASSERT_TRUE(integrator->advance());
    EXPECT_LT(steps, 600);
  }
}

TEST(Integrator, DenseOutputDoesNotDisturbTheSteps) {
  for (const Method& method : all_methods()) {
    SCOPED_TRACE(method.name);
    const auto plain = method.make(rotation, kStart, 1e-8, 1e-10),
               asked = method.make(rotation, kStart, 1e-8, 1e-10);
    double y[2], z[2];
    asked->state(0.0, y);
    EXPECT_EQ(y[0], kStart[0]);
    for (int i = 0; i < 50; ++i) {
      const double before = asked->time();
      ASSERT_TRUE(plain->advance());
      ASSERT_TRUE(asked->advance());
      for (const double part : {0.1, 0.5, 0.9}) {
        const double time = before + part * (asked->time() - before);
        asked->state(time, y);
        if (asked->order() > 1) {
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
  for (const Method& method : adaptive()) {
    SCOPED_TRACE(method.name);
    const auto integrator = method.make(rotation, kStart, 1e-9, 1e-11);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(integrator->advance());
    EXPECT_NEAR(integrator->speed(), std::sqrt(1.04) * std::exp(-0.2 * integrator->time()), 1e-3);
  }
}

// The field says so, or is not.
TEST(Integrator, AFieldThatIsNotFiniteIsReported) {
  for (const bool honest : {true, false}) {
    const Field wall = [&](const double* y, double* out) {
      out[0] = honest || y[0] < 1.5 ? 1.0 : std::nan("");
      out[1] = 0.0;
      return !honest || y[0] < 1.5;
    };
    for (const Method& method : honest ? all_methods() : kPortable) {
      SCOPED_TRACE(method.name);
      const auto integrator = method.make(wall, kStart, 1e-6, 1e-8);
      bool good = true;
      for (int i = 0; i < 10000 && good; ++i) good = integrator->advance();
      EXPECT_FALSE(good);
      EXPECT_FALSE(integrator->why().empty());
      double y[2];
      integrator->state(integrator->time(), y);
      EXPECT_TRUE(std::isfinite(y[0]));
      EXPECT_LT(y[0], 1.52);
      // A step that fails is made smaller, down to the wall (ARKODE gives up long before).
      if (method.name != std::string("explicit")) {
        EXPECT_GT(y[0], 1.49);
      }
    }
  }
}

// The flow comes to rest at the wall: steps that become ever smaller end, too.
TEST(Integrator, CreepingAlongAWallEnds) {
  const Field rest = [](const double* y, double* out) {
    out[0] = std::cbrt(1.5 - y[0]);
    out[1] = 0.0;
    return y[0] < 1.5;
  };
  for (const Method& method : adaptive()) {
    SCOPED_TRACE(method.name);
    const auto integrator = method.make(rest, kStart, 1e-3, 1e-5);
    int steps = 0;
    while (steps < 2000 && integrator->advance()) ++steps;
    EXPECT_LT(steps, 2000);
    EXPECT_FALSE(integrator->why().empty());
    double y[2];
    integrator->state(integrator->time(), y);
    EXPECT_NEAR(y[0], 1.5, 1e-2);
  }
}

// What the field throws, and the wish to stop, pass through; a stop within a Jacobian, too.
TEST(Integrator, ExceptionsPassThrough) {
  for (const Method& method : all_methods()) {
    SCOPED_TRACE(method.name);
    int left = 25;
    const Field thrower = [&](const double* y, double* out) {
      if (--left < 0) throw Interrupted();
      return rotation(y, out);
    };
    const auto integrator = method.make(thrower, kStart, 1e-6, 1e-8);
    const auto go = [&] {
      for (int i = 0; i < 1000; ++i) integrator->advance();
    };
    EXPECT_THROW(go(), Interrupted);
    double y[2];
    integrator->state(integrator->time(), y);
    EXPECT_TRUE(std::isfinite(y[0]));
  }
  for (const auto& make : {make_implicit, make_bdf}) {
    std::atomic<int> asked = 0;
    const auto integrator =
        make(rotation, kStart, 1e-6, 1e-8, testing::stopped_after(asked, 1), {});
    EXPECT_THROW(integrator->advance(), Interrupted);
  }
}

// A stiff linear field: with its matrix there are no differences, and the same solution.
TEST(Integrators, TakeTheSlopesThatTheyAreGiven) {
  const Matrix A{{-1000.0, 1.0, 0.0}, {0.5, -3.0, 0.2}, {0.0, 0.1, -0.01}};
  const Vector start = Vector::Constant(3, 1.0);
  for (const auto& make : {make_implicit, make_bdf}) {
    int evaluations = 0, slopes = 0;
    const Field field = [&](const double* y, double* velocity) {
      ++evaluations;
      Eigen::Map<Vector>(velocity, 3) = A * Eigen::Map<const Vector>(y, 3);
      return true;
    };
    const FieldSlopes matrix = [&](const double*, double* columns) {
      ++slopes;
      Eigen::Map<Eigen::MatrixXd>(columns, 3, 3) = A;
      return true;
    };
    const auto run = [&](const FieldSlopes& given) {
      evaluations = 0;
      const auto integrator = make(field, start, 1e-7, 1e-9, {}, given);
      while (integrator->time() < 10) EXPECT_TRUE(integrator->advance());
      Vector out(3);
      integrator->state(10, out.data());
      return out;
    };
    const Vector plain = run({});
    const int by_differences = evaluations;
    EXPECT_EQ(slopes, 0);
    EXPECT_TRUE(run(matrix).isApprox(plain, 1e-5));
    EXPECT_GT(slopes, 0);
    EXPECT_LT(evaluations, by_differences - 3);
    EXPECT_THROW(run([](const double*, double*) -> bool { throw Interrupted(); }), Interrupted);
  }
}

}  // namespace
}  // namespace headflow::integrator_test
