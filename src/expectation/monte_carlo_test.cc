#include "expectation/monte_carlo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "support/each_target.h"
#include "support/problems.h"

namespace headflow::monte_carlo_test {
namespace {

using testing::engine_options;
using testing::flatten;
using testing::problem_options;
using testing::random_point;

/// One head and two tokens: chi_1 - chi_2 is Gaussian, so that the loss is a one-dimensional
/// integral, E = 2 E[(1 - s(x))^2] with s the logistic function and, for the Gaussian prior with
/// strength nu, x ~ N(0, m^2 (2 + nu) + 2 R^2). Trapezoidal rule: exponentially accurate.
struct Exact {
  double loss, grad_m;
};
Exact one_head_two_tokens(double m, double R, double nu) {
  const double sigma = std::sqrt(m * m * (2 + nu) + 2 * R * R);
  double loss = 0, by_sigma = 0, total = 0;
  for (double z = -12; z <= 12; z += 1e-3) {
    const double weight = std::exp(-0.5 * z * z);
    const double miss = 1.0 / (1.0 + std::exp(sigma * z));  // 1 - s
    loss += weight * 2 * miss * miss;
    by_sigma += weight * -4 * miss * miss * (1 - miss) * z;
    total += weight;
  }
  return {loss / total, by_sigma / total * m * (2 + nu) / sigma};
}

Problem small_problem() {
  ProblemOptions options = problem_options("softmax", "gaussian", 2, 1, 1);
  options.prior_parameters["nu"] = testing::row({3.0});
  return Problem(options);
}

Point small_point() {
  Point point = small_problem().zero_point();
  point.m(0, 0) = 0.8;
  point.R(0, 0) = 0.6;
  return point;
}

// 400 seeds of 2,000 samples: the 95 % interval must cover the exact value in 92 to 98 % of them.
// Coverage has a binomial standard deviation of 1.1 %, so the band has a false-alarm rate of
// 0.6 % a number; the seeds are fixed. Negative control: intervals 30 % too short must fail it.
TEST(MonteCarlo, ErrorBarsAreHonest) {
  const Exact exact = one_head_two_tokens(0.8, 0.6, 3.0);
  int loss_covered = 0, grad_covered = 0, short_covered = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    MonteCarlo engine(small_problem(), engine_options(2000, seed));
    Evaluation got;
    engine.evaluate(small_point(), {.gradient_error = true, .second_moment = false}, got);
    const double off = std::abs(got.loss - exact.loss);
    loss_covered += off < 1.96 * got.loss_error;
    short_covered += off < 1.96 * 0.7 * got.loss_error;
    grad_covered += std::abs(got.grad.m(0, 0) - exact.grad_m) < 1.96 * got.grad_error.m(0, 0);
  }
  for (const int covered : {loss_covered, grad_covered}) {
    EXPECT_GE(covered, 368);
    EXPECT_LE(covered, 392);
  }
  EXPECT_LT(short_covered, 368) << "negative control";
}

// The same for a case in which a draw serves 8 correlated samples, judged by the spread over
// seeds: the reported error must be the standard deviation over 400 seeds within 15 %
// (4 standard errors of that ratio: false-alarm rate 6e-5 a number).
TEST(MonteCarlo, ErrorBarsCountDrawsNotSamples) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    SCOPED_TRACE(activation);
    const Problem problem(problem_options(activation, "flipping", 10, 3, 2));
    const Point point = random_point(problem, 21);
    const int seeds = 400;
    Vector sum = Vector::Zero(point.size() + 1), squares = sum, variance = sum;
    for (int seed = 1; seed <= seeds; ++seed) {
      MonteCarlo engine(problem, engine_options(3001, static_cast<std::uint64_t>(seed)));
      Evaluation got;
      engine.evaluate(point, {.gradient_error = true, .second_moment = false}, got);
      Vector value(sum.size()), error(sum.size());
      value << got.loss, flatten(got.grad);
      error << got.loss_error, flatten(got.grad_error);
      sum += value;
      squares += value.cwiseAbs2();
      variance += error.cwiseAbs2() / seeds;
    }
    const Vector spread = (squares / seeds - (sum / seeds).cwiseAbs2()) * seeds / (seeds - 1.0);
    for (Eigen::Index i = 0; i < sum.size(); ++i) {
      if (spread[i] < 1e-25) continue;  // not trained by this activation
      EXPECT_NEAR(std::sqrt(variance[i] / spread[i]), 1.0, 0.15) << "entry " << i;
    }
  }
}

// Root mean square deviation from the exact value over 64 seeds, N = 2^7 ... 2^17.
TEST(MonteCarlo, ErrorFallsAsOneOverRootN) {
  const Exact exact = one_head_two_tokens(0.8, 0.6, 3.0);
  std::vector<double> x, y;
  for (int power = 7; power <= 17; power += 2) {
    double squares = 0;
    for (std::uint64_t seed = 1; seed <= 64; ++seed) {
      MonteCarlo engine(small_problem(), engine_options(std::int64_t{1} << power, seed));
      Evaluation got;
      engine.evaluate(small_point(), {}, got);
      squares += (got.loss - exact.loss) * (got.loss - exact.loss);
    }
    x.push_back(power * std::numbers::ln2);
    y.push_back(0.5 * std::log(squares / 64));
  }
  const Eigen::Map<Vector> X(x.data(), Eigen::Index(x.size())), Y(y.data(), Eigen::Index(y.size()));
  const Vector dx = X.array() - X.mean(), dy = Y.array() - Y.mean();
  EXPECT_NEAR(dx.dot(dy) / dx.squaredNorm(), -0.5, 0.05);
}

TEST(MonteCarlo, BitIdenticalForAnyNumberOfThreads) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    for (const Precision precision : {Precision::float64, Precision::float32}) {
      const Problem problem(problem_options(activation, "gaussian", 6, 4, 3));
      const Point point = random_point(problem, 22);
      Evaluation first;
      for (const int threads : {1, 2, 7}) {
        EngineOptions options = engine_options(20011, 9);
        options.precision = precision;
        MonteCarlo engine(problem, options, Context::threads(threads));
        engine.refresh(3);
        Evaluation got;
        engine.evaluate(point, {.gradient_error = true, .second_moment = true}, got);
        if (threads == 1) first = got;
        EXPECT_EQ(got.loss, first.loss);
        EXPECT_EQ(got.loss_error, first.loss_error);
        EXPECT_EQ(flatten(got.grad), flatten(first.grad));
        EXPECT_EQ(flatten(got.grad_error), flatten(first.grad_error));
        EXPECT_EQ(got.second_moment, first.second_moment);
      }
    }
  }
}

TEST(MonteCarlo, InstructionSetsAgree) {
  const Problem problem(problem_options("softmax-1", "gaussian", 6, 4, 3));
  const Point point = random_point(problem, 23);
  std::map<std::int64_t, Vector> grad;
  testing::for_each_target([&](std::int64_t target) {
    MonteCarlo engine(problem, engine_options(5000, 9));
    Evaluation got;
    engine.evaluate(point, {}, got);
    grad[target] = flatten(got.grad);
  });
  for (const auto& [target, value] : grad) {
    EXPECT_LE((value - grad.begin()->second).cwiseAbs().maxCoeff(), 1e-13);
  }
  if (grad.contains(HWY_AVX2) && grad.contains(HWY_AVX3)) {
    EXPECT_EQ(grad[HWY_AVX2], grad[HWY_AVX3]) << "both have fused multiply-add: same bits";
  }
}

TEST(MonteCarlo, SamplesKeptOrMadeAnewAreTheSame) {
  for (const Precision precision : {Precision::float64, Precision::float32}) {
    const Problem problem(problem_options("softmax", "gaussian", 3, 2, 2));
    const Point point = random_point(problem, 26);
    EngineOptions options = engine_options(5000, 4);
    options.precision = precision;
    MonteCarlo kept(problem, options, Context::threads(2));
    options.memory = 0;
    MonteCarlo anew(problem, options, Context::threads(2));
    Evaluation a, b;
    for (const std::uint32_t draw : {0u, 5u}) {
      kept.refresh(draw);
      anew.refresh(draw);
      kept.evaluate(point, {}, a);
      anew.evaluate(point, {}, b);
      EXPECT_EQ(a.loss, b.loss);
      EXPECT_EQ(flatten(a.grad), flatten(b.grad));
    }
  }
}

TEST(MonteCarlo, RefreshDrawsIndependentSamples) {
  const Problem problem(problem_options("softmax", "gaussian", 3, 2, 2));
  MonteCarlo engine(problem, engine_options(100, 4));
  const Matrix before = engine.sample(42).x;
  engine.refresh(1);
  EXPECT_NE(before, engine.sample(42).x);
  engine.refresh(0);
  EXPECT_EQ(before, engine.sample(42).x);
}

TEST(MonteCarlo, SinglePrecisionSamplesAreClose) {
  const Problem problem(problem_options("softmax", "gaussian", 5, 4, 2));
  const Point point = random_point(problem, 24);
  EngineOptions options = engine_options(10000, 4);
  MonteCarlo wide(problem, options);
  options.precision = Precision::float32;
  MonteCarlo narrow(problem, options);
  Evaluation a, b;
  wide.evaluate(point, {}, a);
  narrow.evaluate(point, {}, b);
  EXPECT_NEAR(a.loss, b.loss, 1e-7);
  EXPECT_NE(a.loss, b.loss);
  EXPECT_LE((flatten(a.grad) - flatten(b.grad)).cwiseAbs().maxCoeff(), 1e-7);
}

// Every number of samples is honoured exactly, whatever the grouping inside.
TEST(MonteCarlo, AnyNumberOfSamples) {
  const Problem problem(problem_options("softmax", "gaussian", 3, 2, 2));
  const Point point = random_point(problem, 25);
  for (const std::int64_t n : {2, 3, 31, 64, 95, 97, 100, 191, 193, 1000, 1025}) {
    MonteCarlo engine(problem, engine_options(n, 4));
    Evaluation got;
    engine.evaluate(point, {.gradient_error = true, .second_moment = false}, got);
    double loss = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const MonteCarlo::Sample sample = engine.sample(i);
      const Matrix chi =
          point.m * sample.x.leftCols(2).transpose() + point.R * sample.x.rightCols(2).transpose();
      const Matrix e = chi.array().exp();
      const Vector mean = (e.array().colwise() / e.rowwise().sum().array()).colwise().mean();
      loss +=
          (Vector(Vector::Unit(3, sample.relevant)) - mean).squaredNorm() / static_cast<double>(n);
    }
    EXPECT_NEAR(got.loss, loss, 1e-13) << n;
    EXPECT_GT(got.loss_error, 0.0) << n;
    EXPECT_EQ(engine.samples(), n);
  }
}

TEST(MonteCarlo, RefusesWhatItCannotDo) {
  EXPECT_THROW(MonteCarlo(small_problem(), engine_options(1, 1)), OptionError);
  EXPECT_THROW(from_name<Precision>("run.precision", "float16"), OptionError);
  EXPECT_THROW(from_name<EngineName>("run.engine", "qmcc"), OptionError);
}

}  // namespace
}  // namespace headflow::monte_carlo_test
