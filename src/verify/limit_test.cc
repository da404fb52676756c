// SGD in the limit of large D: it comes to its one-step map as D^(-1/2), and the time at which
// heads part grows as log D with the slope that the Hessian of the loss predicts.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/fixed_point.h"
#include "analysis/phases.h"
#include "core/line_fit.h"
#include "sgd/sgd.h"
#include "support/problems.h"

namespace headflow {
namespace {

#ifdef HEADFLOW_SANITIZE
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Root mean square over 12 runs, m and q at tau = 2, N = D / 10, lr = 0.1: kappa = 1.
TEST(SgdLimit, DeviationFallsAsTheSquareRootOfD) {
  if (kSanitized) GTEST_SKIP() << "10^8 samples";
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  Point start = Point::zero(2, 2);
  start.m << 0.5, 0.3, 0.4, -0.2;
  start.R << 1.0, 0.0, 0.1, 0.9;
  start.v = 1;
  FlowOptions flow;
  flow.integrator = "map";
  flow.step = 0.1;
  flow.time = 2;
  flow.kappa = 1;
  flow.outputs = 1;
  EngineOptions options;
  options.engine = "qmc";
  options.samples = 1 << 20;
  const auto engine = make_engine(problem, options);
  Trajectory limit;
  integrate_flow(*engine, start, flow, limit);
  const Point& end = limit.point.back();

  std::vector<double> log_D, log_rms;
  for (const std::int64_t D : {100, 1000, 10'000, 100'000, 1'000'000}) {
    SgdOptions sgd;
    sgd.dim = D;
    sgd.batch = D / 10;
    sgd.lr = 0.1;
    sgd.steps = 20;
    sgd.outputs = 1;
    sgd.runs = 12;
    const SgdState first = state_with(Matrix::Identity(2, 2), start.m, start.R, start.b, start.v);
    Sgd runs(problem, sgd, 4, 0, std::vector<SgdState>(12, first));
    while (!runs.finished()) runs.advance();
    double sum = 0;
    for (const auto& run : runs.recorded()) {
      sum += (run.back().state.m() - end.m).squaredNorm() / 4;
      sum += (run.back().state.q() - end.q()).squaredNorm() / 4;
    }
    log_D.push_back(std::log(static_cast<double>(D)));
    log_rms.push_back(0.5 * std::log(sum / 24));
    fmt::print("D = {:>9}: rms deviation from the map {:.2e}\n", D, std::exp(log_rms.back()));
  }
  const Line line = fit_line(log_D, log_rms);
  fmt::print("slope {:.3f} +- {:.3f}, expected -1/2\n", line.slope, line.error);
  EXPECT_NEAR(line.slope, -0.5, 0.06);
}

// Heads that have not parted differ by D^(-1/2), and this grows as e^(lambda tau), lambda minus the
// smallest curvature at the saddle: tau_s = log D / (2 lambda) + constant.
TEST(SgdLimit, PartingTakesTheLogarithmOfD) {
  if (kSanitized) GTEST_SKIP() << "10^8 samples";
  ProblemOptions problem_options = testing::problem_options("softmax", "flipping", 4, 2, 2);
  problem_options.eta = 0.1;
  const Problem problem(problem_options);
  EngineOptions options;
  options.engine = "factorised";
  options.tolerance = 1e-9;

  // The saddle: where two equal heads end.
  Point equal = Point::zero(2, 2);
  equal.m.col(0).setConstant(0.3);
  equal.v = 1;
  const FixedPoint saddle = find_fixed_point(problem, options, equal, {});
  ASSERT_EQ(saddle.index, 1);
  const double lambda = saddle.escape_rate, predicted = 1 / (2 * lambda);

  FlowOptions flow;
  flow.integrator = "implicit";
  flow.time = 2000;
  flow.outputs = 2000;
  options.tolerance = 1e-8;
  std::vector<double> log_D, of_flow;
  for (double D = 1e2; D < 2e8; D *= 10) {
    const Point start = initial_point(problem, 1 / std::sqrt(D), 3);
    const auto engine = make_flow_engine(problem, options, flow, start);
    Trajectory t;
    integrate_flow(*engine, start, flow, t, [&](const FlowProgress&) {
      return t.point.empty() || std::abs(t.point.back().m(0, 1) - t.point.back().m(1, 1)) < 0.6;
    });
    log_D.push_back(std::log(D));
    std::vector<double> apart;
    for (const Point& point : t.point) apart.push_back(std::abs(point.m(0, 1) - point.m(1, 1)));
    of_flow.push_back(first_crossing(t.time, apart, 0.5));
    fmt::print("D = {:.0e}: flow parts at tau = {:.2f}\n", D, of_flow.back());
  }
  const Line all = fit_line(log_D, of_flow),
             line = fit_line(std::span(log_D).subspan(2), std::span(of_flow).subspan(2));
  fmt::print(
      "flow: slope {:.3f} +- {:.3f} per unit of log D from 10^4 on ({:.3f} +- {:.3f} from 10^2); "
      "Hessian: 1/(2 lambda) = {:.3f}\n",
      line.slope, line.error, all.slope, all.error, predicted);
  // Noise of 10^-1 and 0.03 is not small: heads that start so far apart part a little earlier.
  EXPECT_NEAR(line.slope, predicted, 0.03 * predicted);
  EXPECT_NEAR(all.slope, predicted, 0.15 * predicted);

  // SGD with N = D. Most of the scatter between runs is that of |m_12 - m_22| at the start, which
  // is of order D^(-1/2): a start that is closer by a factor x parts later by log(x) / lambda,
  // which is taken off.
  std::vector<double> short_log_D, of_sgd, weight;
  for (const std::int64_t D : {100, 1000, 10'000}) {
    SgdOptions sgd;
    sgd.dim = D;
    sgd.batch = D;
    sgd.lr = 0.2;
    sgd.tau = 300;
    sgd.outputs = 1500;
    sgd.runs = D > 5000 ? 12 : 200;
    Sgd runs(problem, sgd, 8, 0, Sgd::starts(problem, sgd, 8));
    std::vector<double> time;
    for (const std::int64_t step : runs.output_steps()) {
      time.push_back(sgd.lr * static_cast<double>(step));
    }
    while (!runs.finished()) runs.advance();
    double sum = 0, square = 0, n = 0;
    for (const auto& run : runs.recorded()) {
      std::vector<double> apart;
      for (const SgdRecord& record : run) {
        const Matrix m = record.state.m();
        apart.push_back(std::abs(m(0, 1) - m(1, 1)));
      }
      const double parted = first_crossing(time, apart, 0.5);
      if (std::isnan(parted)) continue;
      const double y = parted + std::log(apart[0] * std::sqrt(static_cast<double>(D))) / lambda;
      sum += y, square += y * y, n += 1;
    }
    EXPECT_GE(n, 0.9 * sgd.runs);
    const double error = std::sqrt((square / n - sum * sum / n / n) / (n - 1));
    short_log_D.push_back(std::log(static_cast<double>(D)));
    of_sgd.push_back(sum / n);
    weight.push_back(error);
    fmt::print("D = {:>6}: SGD parts at tau = {:.2f} +- {:.2f} ({} runs)\n", D, sum / n, error, n);
  }
  const double range = short_log_D.back() - short_log_D.front();
  const double slope = (of_sgd.back() - of_sgd.front()) / range;
  const double slope_error = std::hypot(weight.back(), weight.front()) / range;
  fmt::print("SGD: slope {:.2f} +- {:.2f}\n", slope, slope_error);
  EXPECT_NEAR(slope, predicted, 0.15 * predicted + 3 * slope_error);
}

}  // namespace
}  // namespace headflow
