#include "dynamics/flow.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/error.h"
#include "support/problems.h"
#include "support/stop.h"

namespace headflow::flow_test {
namespace {

using testing::engine_options;
using testing::flatten;
using testing::problem_options;

Problem small_problem(const char* activation = "softmax") {
  return Problem(problem_options(activation, "flipping", 4, 2, 2));
}

struct Result {
  FlowSummary summary;
  Trajectory trajectory;
  Vector end() const { return flatten(trajectory.point.back()); }
};

Result run(const Problem& problem, const FlowOptions& options, std::int64_t samples = 2000) {
  const auto engine = make_engine(problem, engine_options(samples, 1));
  Result out;
  out.summary = integrate_flow(*engine, initial_point(problem, 0.05, 1), options, out.trajectory);
  return out;
}

FlowOptions options_for(Scheme integrator, double time) {
  FlowOptions options;
  options.integrator = integrator;
  options.time = time;
  options.rtol = 1e-9;
  options.atol = 1e-11;
  options.outputs = 10;
  return options;
}

TEST(Flow, IntegratorsAgreeOnFixedSamples) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    SCOPED_TRACE(activation);
    const Problem problem = small_problem(activation);
    const Result adaptive = run(problem, options_for(Scheme::adaptive, 20));
    const Result implicit = run(problem, options_for(Scheme::implicit, 20));
    EXPECT_LT((adaptive.end() - implicit.end()).norm(), 1e-6);
    // Euler's error is c h + O(h^2): extrapolating two steps leaves the square.
    FlowOptions euler = options_for(Scheme::euler, 20);
    euler.step = 0.02;
    const Vector coarse = run(problem, euler).end();
    euler.step = 0.01;
    const Vector fine = run(problem, euler).end();
    const double first_order = (fine - adaptive.end()).norm();
    EXPECT_LT((2 * fine - coarse - adaptive.end()).norm(), 0.05 * first_order + 1e-8);
    EXPECT_NEAR((coarse - adaptive.end()).norm() / first_order, 2.0, 0.1);
  }
}

TEST(Flow, LossDecreases) {
  const Result result = run(small_problem(), options_for(Scheme::adaptive, 50));
  for (std::size_t i = 1; i < result.trajectory.loss.size(); ++i) {
    EXPECT_LT(result.trajectory.loss[i], result.trajectory.loss[i - 1]);
  }
}

TEST(Flow, SaysWhyItStopped) {
  const Result timed = run(small_problem(), options_for(Scheme::adaptive, 5));
  EXPECT_EQ(timed.summary.outcome, FlowOutcome::reached_time);
  EXPECT_EQ(timed.trajectory.time.back(), 5.0);

  FlowOptions options = options_for(Scheme::implicit, 1e6);
  options.gradient_tolerance = 1e-6;
  const Result still = run(small_problem(), options);
  EXPECT_EQ(still.summary.outcome, FlowOutcome::stationary);
  EXPECT_LT(still.trajectory.gradient_norm.back(), 1e-6);
  EXPECT_LT(still.summary.final_time, 1e6);
  EXPECT_EQ(still.trajectory.time.back(), still.summary.final_time);
  EXPECT_LT(still.summary.evaluations, 3000);
}

TEST(Flow, StationaryWithEulerToo) {
  FlowOptions options = options_for(Scheme::euler, 1e6);
  options.step = 0.5;
  options.gradient_tolerance = 1e-4;
  const Result result = run(small_problem(), options, 500);
  EXPECT_EQ(result.summary.outcome, FlowOutcome::stationary);
  EXPECT_LT(result.trajectory.gradient_norm.back(), 1e-4);
}

TEST(Flow, DivergenceIsAnOutcome) {
  FlowOptions options = options_for(Scheme::euler, 1e9);
  options.step = 1e4;
  const Result result = run(small_problem("softmax-1"), options);
  EXPECT_EQ(result.summary.outcome, FlowOutcome::diverged);
  EXPECT_NE(result.summary.message.find("diverged after tau"), std::string::npos);
  for (std::size_t i = 0; i < result.trajectory.time.size(); ++i) {
    EXPECT_TRUE(result.trajectory.point[i].all_finite());
    EXPECT_TRUE(std::isfinite(result.trajectory.loss[i]));
  }
}

TEST(Flow, OutputDoesNotDisturbTheSteps) {
  for (const Scheme integrator : {Scheme::euler, Scheme::adaptive, Scheme::implicit}) {
    FlowOptions few = options_for(integrator, 10), many = few;
    few.outputs = 1;
    many.outputs = 777;
    many.spacing = Spacing::log;
    const Result a = run(small_problem(), few, 500), b = run(small_problem(), many, 500);
    EXPECT_EQ(a.summary.steps, b.summary.steps);
    EXPECT_EQ(a.end(), b.end());
    EXPECT_EQ(b.trajectory.time.size(), 778u);
  }
}

TEST(Flow, OutputTimes) {
  FlowOptions options;
  options.time = 100;
  options.outputs = 4;
  EXPECT_EQ(output_times(options), (std::vector<double>{0, 25, 50, 75, 100}));
  options.spacing = Spacing::log;
  options.first_output = 0.1;
  const std::vector<double> times = output_times(options);
  ASSERT_EQ(times.size(), 5u);
  EXPECT_NEAR(times[1], 0.1, 1e-15);
  EXPECT_NEAR(times[2], 1.0, 1e-14);
  EXPECT_EQ(times[4], 100.0);
}

TEST(Flow, TheObserverCanStopIt) {
  const Problem problem = small_problem();
  const auto engine = make_engine(problem, engine_options(500, 1));
  Trajectory trajectory;
  int steps = 0;
  const FlowSummary summary =
      integrate_flow(*engine, initial_point(problem, 0.05, 1), options_for(Scheme::euler, 100),
                     trajectory, Context::until([&] { return ++steps >= 30; }));
  EXPECT_EQ(summary.outcome, FlowOutcome::interrupted);
  EXPECT_EQ(summary.steps, 30);
  EXPECT_NEAR(trajectory.time.back(), 0.6, 1e-12);
}

// Stopped from within an evaluation, also through the C of SUNDIALS: what was recorded is kept.
TEST(Flow, StopsFromWithinAnEvaluation) {
  const Problem problem = small_problem();
  for (const Scheme integrator : {Scheme::euler, Scheme::adaptive, Scheme::implicit}) {
    SCOPED_TRACE(to_string(integrator));
    for (const int allowed : {0, 30, 200}) {
      std::atomic<int> asked = 0;
      const auto made = make_engine(problem, engine_options(2000, 1), {},
                                    testing::stopped_after(asked, allowed + 100'001));
      asked = 100'000;
      Trajectory trajectory;
      const auto integrate = [&] {
        return integrate_flow(*made, initial_point(problem, 0.05, 1), options_for(integrator, 1000),
                              trajectory);
      };
      if (allowed == 0) {
        EXPECT_THROW(integrate(), Interrupted);
        continue;
      }
      const FlowSummary summary = integrate();
      EXPECT_EQ(summary.outcome, FlowOutcome::interrupted);
      ASSERT_FALSE(trajectory.time.empty());
      EXPECT_EQ(summary.final_time, trajectory.time.back());
      EXPECT_EQ(trajectory.loss.size(), trajectory.time.size());
    }
  }
}

// One long step passes many output times: the observer is asked between them.
TEST(Flow, TheObserverCanStopBetweenOutputsOfAStep) {
  FlowOptions options = options_for(Scheme::euler, 10);
  options.step = 10;
  options.outputs = 1000;
  const Problem problem = small_problem();
  const auto engine = make_engine(problem, engine_options(200, 1));
  Trajectory trajectory;
  const FlowSummary summary =
      integrate_flow(*engine, initial_point(problem, 0.05, 1), options, trajectory,
                     Context::until([&] { return trajectory.time.size() >= 7; }));
  EXPECT_EQ(summary.outcome, FlowOutcome::interrupted);
  EXPECT_EQ(trajectory.time.size(), 7u);
}

// What is frozen stays where it is, to the bit, and the rest moves; noise would move R all the
// same.
TEST(Flow, WhatIsFrozenStays) {
  for (const char* frozen : {"m", "R", "b", "v"}) {
    ProblemOptions options = testing::problem_options("softmax-1", "gaussian", 4, 2, 2);
    options.train = {"m", "R", "b", "v"};
    std::erase(*options.train, frozen);
    const Problem problem(options);
    const auto engine = make_engine(problem, engine_options(500, 1));
    const Point start = testing::random_point(problem, 3);
    Trajectory run;
    FlowOptions flow = options_for(Scheme::adaptive, 2);
    integrate_flow(*engine, start, flow, run);
    const Point& end = run.point.back();
    const auto check = [&](const char* name, double moved) {
      SCOPED_TRACE(fmt::format("{} with {} frozen", name, frozen));
      if (std::string(frozen) == name) {
        EXPECT_LT(moved, 1e-15);
      } else {
        EXPECT_GT(moved, 1e-4);
      }
    };
    check("m", (end.m - start.m).cwiseAbs().maxCoeff());
    check("R", (end.R - start.R).cwiseAbs().maxCoeff());
    check("b", (end["b"] - start["b"]).cwiseAbs().maxCoeff());
    check("v", std::abs(end["v"][0] - start["v"][0]));
    flow.kappa = 0.1;
    if (frozen[0] == 'm' || frozen[0] == 'R') {
      EXPECT_THROW(integrate_flow(*engine, start, flow, run), OptionError);
    }
  }
}

TEST(Flow, WhatDoesNotFitIsRefused) {
  FlowOptions options = options_for(Scheme::euler, 10);
  const Problem problem = small_problem();
  const auto engine = make_engine(problem, engine_options(200, 1));
  const auto refused = [&](const char* key) {
    Trajectory trajectory;
    try {
      integrate_flow(*engine, initial_point(problem, 0.05, 1), options, trajectory,
                     Context::until([] { return true; }));
    } catch (const OptionError& e) {
      EXPECT_EQ(e.key(), key);
      return;
    }
    ADD_FAILURE() << key;
  };
  options.outputs = 9'999'999;
  refused("flow.outputs");
  options = options_for(Scheme::euler, 1e6);
  options.sampling = Sampling::redrawn;
  options.step = 0.01;  // 10^8 draws: there are 2^24
  refused("flow.step");
}

TEST(Flow, RedrawnSamplesAreReproducibleAndClose) {
  FlowOptions options = options_for(Scheme::euler, 3);
  const Result fixed = run(small_problem(), options, 20000);
  options.sampling = Sampling::redrawn;
  const Result redrawn = run(small_problem(), options, 20000);
  EXPECT_EQ(redrawn.end(), run(small_problem(), options, 20000).end());
  EXPECT_NE(redrawn.end(), fixed.end());
  EXPECT_LT((redrawn.end() - fixed.end()).norm(), 0.05);
}

// d(R R^T)/dtau = -(grad_R R^T + R grad_R^T) + kappa E[g g^T]; m, b, v follow the gradient.
TEST(Flow, KappaAddsTheNoiseOfSgd) {
  const Problem problem = small_problem("softmax-1");
  const auto engine = make_engine(problem, engine_options(5000, 1));
  const Point start = testing::random_point(problem, 5);
  Evaluation e;
  engine->evaluate(start, {.gradient_error = false, .second_moment = true}, e);
  FlowOptions options = options_for(Scheme::euler, 1e-4);
  options.step = 1e-4;
  options.outputs = 1;
  options.kappa = 3.0;
  Trajectory trajectory;
  integrate_flow(*engine, start, options, trajectory);
  const Point& end = trajectory.point.back();
  // The samples see R through its symmetric root: evaluate the gradient there too.
  Point rotated = start;
  rotated.R = positive_square_root(start.R * start.R.transpose());
  engine->evaluate(rotated, {.gradient_error = false, .second_moment = true}, e);
  const Matrix half = e.grad.R * rotated.R.transpose();
  const Matrix wanted = -(half + half.transpose()) + 3.0 * e.second_moment;
  const Matrix got = (end.R * end.R.transpose() - start.R * start.R.transpose()) / 1e-4;
  EXPECT_LT((got - wanted).norm(), 1e-9);
  EXPECT_LT(((end.m - start.m) / 1e-4 + e.grad.m).norm(), 1e-9);
  EXPECT_LT(((end["b"] - start["b"]) / 1e-4 + e.grad["b"]).norm(), 1e-9);
}

TEST(Flow, SmallKappaIsGradientFlow) {
  FlowOptions options = options_for(Scheme::adaptive, 5);
  options.rtol = 1e-6;
  options.atol = 1e-8;
  const auto end_q = [&](double kappa) {
    options.kappa = kappa;
    return run(small_problem(), options, 20000).trajectory.point.back().q();
  };
  const Matrix zero = end_q(0.0);
  // R and its symmetric root see different samples: equal within Monte-Carlo noise only.
  EXPECT_LT((zero - end_q(1e-9)).norm(), 0.05);
  EXPECT_GT(end_q(2.0)(0, 0), zero(0, 0) + 0.1);
}

Point one_step(Scheme integrator, double kappa, double step, Engine& engine, const Point& start) {
  FlowOptions options = options_for(integrator, step);
  options.step = step;
  options.outputs = 1;
  options.kappa = kappa;
  Trajectory trajectory;
  EXPECT_EQ(integrate_flow(engine, start, options, trajectory).steps, 1);
  return trajectory.point.back();
}

TEST(Flow, AStepOfTheMapIsAStepOfSgd) {
  const Problem problem = small_problem("softmax-1");
  const auto engine = make_engine(problem, engine_options(5000, 1));
  Point start = testing::random_point(problem, 5);
  start.R = positive_square_root(start.R * start.R.transpose());  // as the samples will see it
  const double gamma = 1.5, kappa = 0.7;
  Evaluation e;
  engine->evaluate(start, {.second_moment = true}, e);
  const Matrix moved = start.R - gamma * e.grad.R;
  const Point end = one_step(Scheme::map, kappa, gamma, *engine, start);
  EXPECT_LT(
      (end.R * end.R.transpose() - moved * moved.transpose() - gamma * kappa * e.second_moment)
          .norm(),
      1e-12);
  EXPECT_LT((end.m - (start.m - gamma * e.grad.m)).norm(), 1e-13);
  EXPECT_LT((end["b"] - (start["b"] - gamma * e.grad["b"])).norm(), 1e-13);
  EXPECT_NEAR(end["v"][0], start["v"][0] - gamma * e.grad["v"][0], 1e-13);
  // Euler's step of the flow lacks gamma^2 G G^T.
  const Point euler = one_step(Scheme::euler, kappa, gamma, *engine, start);
  EXPECT_EQ(euler.m, end.m);
  EXPECT_LT((end.R * end.R.transpose() - euler.R * euler.R.transpose() -
             gamma * gamma * e.grad.R * e.grad.R.transpose())
                .norm(),
            1e-12);
}

TEST(Flow, TheMapWithoutNoiseIsGradientDescent) {
  const Problem problem = small_problem("softmax-1");
  EngineOptions exact;
  exact.engine = EngineName::factorised;  // no second moments are needed
  for (const EngineOptions& how : {engine_options(2000, 1), exact}) {
    const auto engine = make_engine(problem, how);
    const Point start = testing::random_point(problem, 5);
    EXPECT_EQ(flatten(one_step(Scheme::map, 0.0, 0.8, *engine, start)),
              flatten(one_step(Scheme::euler, 0.0, 0.8, *engine, start)));
  }
  const auto engine = make_engine(problem, exact);
  EXPECT_THROW(one_step(Scheme::map, 1.0, 0.8, *engine, testing::random_point(problem, 5)),
               OptionError);
}

// gamma -> 0 at fixed kappa: the flow with that kappa, at first order in gamma.
TEST(Flow, TheMapConvergesToTheFlow) {
  const Problem problem = small_problem();
  FlowOptions options = options_for(Scheme::adaptive, 4);
  options.kappa = 1.0;
  const auto overlaps = [&](const Result& result) {
    const Point& end = result.trajectory.point.back();
    Vector out(8);
    out << end.m.reshaped(), end.q().reshaped();
    return out;
  };
  const Vector flow = overlaps(run(problem, options));
  options.integrator = Scheme::map;
  const auto map = [&](double gamma) {
    options.step = gamma;
    return overlaps(run(problem, options));
  };
  const Vector coarse = map(0.05), fine = map(0.025);
  const double error = (fine - flow).norm();
  EXPECT_NEAR((coarse - flow).norm() / error, 2.0, 0.1);
  EXPECT_LT((2 * fine - coarse - flow).norm(), 0.05 * error);
}

// States between steps are linear in R R^T, as they are in m.
TEST(Flow, TheMapIsInterpolatedBetweenSteps) {
  const Problem problem = small_problem();
  FlowOptions options = options_for(Scheme::map, 1.0);
  options.step = 0.5;
  options.kappa = 1.0;
  options.outputs = 4;
  const Result result = run(problem, options, 500);
  EXPECT_EQ(result.summary.steps, 2);
  const std::vector<Point>& at = result.trajectory.point;
  const auto square = [&](std::size_t i) { return Matrix(at[i].R * at[i].R.transpose()); };
  EXPECT_LT((at[1].m - 0.5 * (at[0].m + at[2].m)).norm(), 1e-13);
  EXPECT_LT((square(1) - 0.5 * (square(0) + square(2))).norm(), 1e-12);
}

TEST(Flow, InitialPointHasThePapersLaw) {
  ProblemOptions options = problem_options("softmax-1", "gaussian", 4, 40, 30);
  options.eta = 1.5;
  const Problem problem(options);
  const Point point = initial_point(problem, 0.01, 7);
  // 1200 and 1600 entries: the standard deviation is known to 2 %, the band is 4.5 of that.
  EXPECT_NEAR(std::sqrt(point.m.squaredNorm() / 1200), 0.01, 0.0009);
  const Matrix off = point.R - 1.5 * Matrix::Identity(40, 40);
  EXPECT_NEAR(std::sqrt(off.squaredNorm() / 1600), 0.01, 0.0008);
  EXPECT_EQ(point["b"].norm(), 0.0);
  EXPECT_EQ(point["v"][0], 1.0);
  EXPECT_NE(flatten(point), flatten(initial_point(problem, 0.01, 8)));
}

TEST(Flow, OptionsAreChecked) {
  const auto rejected = [](const char* key, const auto& change) {
    FlowOptions options;
    change(options);
    try {
      options.check();
      ADD_FAILURE() << key << " accepted";
    } catch (const OptionError& e) {
      EXPECT_EQ(e.key(), key);
    }
  };
  rejected("flow.time", [](auto& o) { o.time = 0; });
  rejected("flow.step", [](auto& o) { o.step = -1; });
  rejected("flow.rtol", [](auto& o) { o.rtol = 0; });
  rejected("flow.atol", [](auto& o) { o.atol = 1; });
  rejected("flow.kappa", [](auto& o) { o.kappa = -1; });
  rejected("flow.sampling", [](auto& o) { o.sampling = Sampling::redrawn; });
  rejected("flow.outputs", [](auto& o) { o.outputs = 0; });
  rejected("flow.first_output", [](auto& o) { o.spacing = Spacing::log, o.first_output = 200; });
  rejected("flow.init_from", [](auto& o) { o.init = FlowInit::file; });
  rejected("flow.init_run", [](auto& o) { o.init_run = 0; });
  rejected("flow.gradient_tolerance", [](auto& o) { o.gradient_tolerance = NAN; });
}

}  // namespace
}  // namespace headflow::flow_test
