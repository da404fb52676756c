#include "expectation/qmc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "core/error.h"
#include "support/each_target.h"
#include "support/problems.h"

namespace headflow::qmc_test {
namespace {

using testing::engine_options;
using testing::flatten;
using testing::problem_options;
using testing::random_point;

constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

/// The priors of tests/support and discrete ones with many atoms: "19 atoms" need several calls of
/// the activation, "70 atoms" are sampled.
Problem make_problem(const std::string& activation, const std::string& prior, int L, int H, int F) {
  if (!prior.ends_with(" atoms")) return Problem(problem_options(activation, prior, L, H, F));
  const int atoms = std::stoi(prior);
  ProblemOptions options = problem_options(activation, "discrete", L, H, F);
  options.prior_parameters["points"] = testing::random_matrix(atoms, F, 1) * 2.0;
  options.prior_parameters["weights"] = Matrix::Constant(1, atoms, 1.0 / atoms);
  return Problem(options);
}

struct Estimate {
  Vector value, error;  // of the loss, then of the gradient
};
Estimate estimate(Engine& engine, const Point& point) {
  Evaluation got;
  engine.evaluate(point, {.gradient_error = true}, got);
  Estimate out{Vector(point.size() + 1), Vector(point.size() + 1)};
  out.value << got.loss, flatten(got.grad);
  out.error << got.loss_error, flatten(got.grad_error);
  return out;
}

/// Largest |difference| / standard error over loss and gradient, parameters not trained apart.
double largest_z(const Estimate& a, const Estimate& b) {
  double worst = 0;
  for (Eigen::Index i = 0; i < a.value.size(); ++i) {
    const double error = std::hypot(a.error[i], b.error[i]);
    const double difference = std::abs(a.value[i] - b.value[i]);
    if (error > 1e-14 || difference > 1e-13) worst = std::max(worst, difference / error);
  }
  return worst;
}

// About 850 numbers, each beyond 4 standard errors with probability 6e-5 where Monte Carlo's error
// dominates and 2e-4 where both are alike (Student's law with 60 degrees of freedom): false-alarm
// rate of the whole test 5 to 15 % over seeds, which are fixed.
TEST(Qmc, AgreesWithMonteCarlo) {
  struct Shape {
    int L, H, F;
  };
  int case_number = 0;
  double wrong = 0;
  for (const char* activation : kActivations) {
    for (const char* prior : {"flipping", "gaussian", "full", "discrete", "19 atoms", "70 atoms"}) {
      for (const auto& [L, H, F] : {Shape{1, 2, 2}, {2, 1, 2}, {4, 2, 3}, {9, 3, 2}}) {
        SCOPED_TRACE(fmt::format("{} {} L {} H {} F {}", activation, prior, L, H, F));
        const Problem problem = make_problem(activation, prior, L, H, F);
        const Point point = random_point(problem, static_cast<unsigned>(++case_number), 0.7);
        MonteCarlo mc(problem, engine_options(100'000, 11));
        Qmc qmc(problem, engine_options(16 * 512, 12));
        const Estimate a = estimate(mc, point), b = estimate(qmc, point);
        EXPECT_LT(largest_z(a, b), 4.0);
        Point off = point;
        off.m *= 1.1;
        wrong = std::max(wrong, largest_z(a, estimate(qmc, off)));
      }
    }
  }
  EXPECT_GT(wrong, 10.0) << "negative control";
}

// The mean square of the reported errors against the spread over 128 seeds. Their ratio has a
// standard deviation of 6 to 7 % where estimates are normal: 30 % is 4 of them, false-alarm rate
// 6e-5 a number. Negative control: with errors 40 % too small most numbers must fail.
TEST(Qmc, ErrorBarsAreHonest) {
  const auto honest = [](double ratio) { return std::abs(ratio - 1.0) < 0.3; };
  int numbers = 0, short_honest = 0;
  for (const char* prior : {"flipping", "gaussian", "70 atoms"}) {
    for (const char* activation : kActivations) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      const Problem problem = make_problem(activation, prior, 4, 2, 2);
      const Point point = random_point(problem, 21, 0.7);
      const int seeds = 128;
      Vector sum = Vector::Zero(point.size() + 1), squares = sum, variance = sum;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Qmc engine(problem, engine_options(16 * 64, seed));
        const Estimate got = estimate(engine, point);
        sum += got.value;
        squares += got.value.cwiseAbs2();
        variance += got.error.cwiseAbs2() / seeds;
      }
      const Vector spread = (squares / seeds - (sum / seeds).cwiseAbs2()) * seeds / (seeds - 1.0);
      for (Eigen::Index i = 0; i < sum.size(); ++i) {
        if (spread[i] < 1e-25) continue;  // not trained by this activation
        const double ratio = std::sqrt(variance[i] / spread[i]);
        EXPECT_TRUE(honest(ratio)) << "entry " << i << " ratio " << ratio;
        ++numbers;
        short_honest += honest(0.6 * ratio);
      }
    }
  }
  EXPECT_LT(short_honest, numbers / 4) << "negative control";
}

/// Slope of log(standard deviation of the loss over 40 seeds) in log N, N = 2^7 ... 2^15.
template <class AnyEngine>
double slope(const Problem& problem, const Point& point) {
  const int seeds = 40;
  std::vector<double> x, y;
  for (int power = 7; power <= 15; ++power) {
    Vector loss(seeds);
    for (int seed = 0; seed < seeds; ++seed) {
      EngineOptions options =
          engine_options(std::int64_t{1} << power, static_cast<std::uint64_t>(seed));
      options.randomisations = 2;
      AnyEngine engine(problem, options);
      Evaluation got;
      engine.evaluate(point, {}, got);
      loss[seed] = got.loss;
    }
    x.push_back(power * std::numbers::ln2);
    y.push_back(0.5 * std::log((loss.array() - loss.mean()).square().sum() / (seeds - 1)));
  }
  const Eigen::Map<Vector> X(x.data(), Eigen::Index(x.size())), Y(y.data(), Eigen::Index(y.size()));
  const Vector dx = X.array() - X.mean(), dy = Y.array() - Y.mean();
  return dx.dot(dy) / dx.squaredNorm();
}

// Two tokens, one head, one feature, theta = +-1: four dimensions. A slope has a standard error of
// about 0.02, so that -1.0 passes -0.9 by 5 of them.
TEST(Qmc, ErrorFallsFasterThanMonteCarlos) {
  for (const char* activation : {"softmax", "softmax-1"}) {
    SCOPED_TRACE(activation);
    ProblemOptions options = problem_options(activation, "discrete", 2, 1, 1);
    options.prior_parameters["points"] = testing::row({1.0, -1.0}).transpose();
    options.prior_parameters["weights"] = testing::row({0.5, 0.5});
    const Problem problem(options);
    Point point = problem.start_point();
    point.m(0, 0) = point.R(0, 0) = 0.5;
    EXPECT_LT(slope<Qmc>(problem, point), -0.9);
    EXPECT_NEAR(slope<MonteCarlo>(problem, point), -0.5, 0.1) << "negative control";
  }
}

void expect_same(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.loss_error, b.loss_error);
  EXPECT_EQ(flatten(a.grad), flatten(b.grad));
  EXPECT_EQ(flatten(a.grad_error), flatten(b.grad_error));
  EXPECT_EQ(a.second_moment, b.second_moment);
}

TEST(Qmc, BitIdenticalForAnyNumberOfThreadsAndMemory) {
  for (const char* prior : {"gaussian", "19 atoms", "70 atoms"}) {
    for (const Precision precision : {Precision::float64, Precision::float32}) {
      SCOPED_TRACE(fmt::format("{} {}", prior, to_string(precision)));
      const Problem problem = make_problem("b-softmax", prior, 6, 3, 2);
      const Point point = random_point(problem, 22);
      Evaluation first;
      for (const int threads : {1, 2, 3}) {
        for (const std::int64_t memory : {2048, 0}) {
          EngineOptions options = engine_options(8192, 9);
          options.precision = precision;
          options.memory = memory;
          Qmc engine(problem, options, Context::threads(threads));
          engine.refresh(3);
          Evaluation got;
          engine.evaluate(point, {.gradient_error = true, .second_moment = true}, got);
          if (threads == 1 && memory > 0) first = got;
          expect_same(got, first);
        }
      }
    }
  }
}

TEST(Qmc, InstructionSetsAgree) {
  const Problem problem = make_problem("softmax-1", "gaussian", 6, 4, 3);
  const Point point = random_point(problem, 23);
  std::map<std::int64_t, Vector> values;
  testing::for_each_target([&](std::int64_t target) {
    Qmc engine(problem, engine_options(4096, 9));
    values[target] = estimate(engine, point).value;
  });
  for (const auto& [target, value] : values) {
    EXPECT_LE((value - values.begin()->second).cwiseAbs().maxCoeff(), 1e-13);
  }
  if (values.contains(HWY_AVX2) && values.contains(HWY_AVX3)) {
    EXPECT_EQ(values[HWY_AVX2], values[HWY_AVX3]) << "both have fused multiply-add: same bits";
  }
}

TEST(Qmc, RefreshGivesIndependentPoints) {
  const Problem problem = make_problem("softmax", "gaussian", 3, 2, 2);
  const Point point = random_point(problem, 24);
  Qmc engine(problem, engine_options(1024, 4));
  const double before = estimate(engine, point).value[0];
  engine.refresh(1);
  EXPECT_NE(before, estimate(engine, point).value[0]);
  engine.refresh(0);
  EXPECT_EQ(before, estimate(engine, point).value[0]);
}

// With a step of 1e-4 the differences are good to about 1e-8.
TEST(Qmc, GradientEqualsDifferencesOfTheLoss) {
  for (const char* activation : kActivations) {
    for (const char* prior : {"full", "discrete", "19 atoms", "70 atoms"}) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      const Problem problem = make_problem(activation, prior, 4, 2, 2);
      const Point point = random_point(problem, 25, 0.7);
      Qmc engine(problem, engine_options(16 * 64, 3));
      const Vector grad = estimate(engine, point).value.tail(point.size());
      const Vector x = flatten(point);
      for (Eigen::Index i = 0; i < x.size(); ++i) {
        const double h = 1e-4;
        double loss[2];
        for (const int side : {0, 1}) {
          Vector y = x;
          y[i] += side ? h : -h;
          Point moved = point;
          moved.unpack(y.data());
          loss[side] = estimate(engine, moved).value[0];
        }
        EXPECT_NEAR(grad[i], (loss[1] - loss[0]) / (2 * h), 1e-7) << "entry " << i;
      }
    }
  }
}

// The second moment takes the plain path, one placement at a time: same loss and gradient. Its
// value is compared with Monte Carlo's, whose error here is below 1 %.
TEST(Qmc, SecondMoment) {
  for (const char* prior : {"gaussian", "discrete", "19 atoms"}) {
    SCOPED_TRACE(prior);
    const Problem problem = make_problem("softmax", prior, 4, 2, 2);
    const Point point = random_point(problem, 26, 0.7);
    MonteCarlo mc(problem, engine_options(200'000, 1));
    Qmc engine(problem, engine_options(16 * 512, 1));
    Evaluation with, without, reference;
    engine.evaluate(point, {.second_moment = true}, with);
    engine.evaluate(point, {}, without);
    mc.evaluate(point, {.second_moment = true}, reference);
    EXPECT_NEAR(with.loss, without.loss, 1e-14);
    EXPECT_LE((flatten(with.grad) - flatten(without.grad)).cwiseAbs().maxCoeff(), 1e-13);
    EXPECT_LE((with.second_moment - reference.second_moment).norm(),
              0.02 * reference.second_moment.norm());
    EXPECT_GT(reference.second_moment.norm(), 0.0);
  }
}

// Scores far beyond what the fast kernels take: the plain path, still finite and right.
TEST(Qmc, ExtremeScores) {
  const Problem problem = make_problem("softmax", "discrete", 3, 2, 2);
  const Point point = random_point(problem, 27, 200.0);
  MonteCarlo mc(problem, engine_options(40'000, 1));
  Qmc engine(problem, engine_options(16 * 256, 1));
  const Estimate a = estimate(mc, point), b = estimate(engine, point);
  EXPECT_TRUE(b.value.allFinite());
  EXPECT_LT(std::abs(a.value[0] - b.value[0]), 4 * std::hypot(a.error[0], b.error[0]));
}

// 5002 coordinates, of which the sequence has 3667: the last tokens are pseudo-random. 20 numbers,
// each beyond 4 standard errors with probability 1.2e-3 at most (15 degrees of freedom):
// false-alarm rate below 2.5 %.
TEST(Qmc, MoreDimensionsThanTheSequenceHas) {
  const Problem problem = make_problem("softmax-1", "gaussian", 1000, 3, 2);
  const Point point = random_point(problem, 28, 1.5);
  MonteCarlo mc(problem, engine_options(8192, 2));
  Qmc engine(problem, engine_options(16 * 32, 2));
  EXPECT_LT(largest_z(estimate(mc, point), estimate(engine, point)), 4.0);
  Point off = point;
  off.m *= 1.5;
  EXPECT_GT(largest_z(estimate(mc, point), estimate(engine, off)), 4.0) << "negative control";
}

TEST(Qmc, RoundsPointsUpToAPowerOfTwo) {
  const Problem problem = make_problem("softmax", "gaussian", 3, 2, 2);
  const auto samples = [&](std::int64_t wanted, int randomisations) {
    EngineOptions options = engine_options(wanted, 1);
    options.randomisations = randomisations;
    return Qmc(problem, options).samples();
  };
  EXPECT_EQ(samples(1000, 16), 16 * 64);
  EXPECT_EQ(samples(1024, 16), 16 * 64);
  EXPECT_EQ(samples(1025, 16), 16 * 128);
  EXPECT_EQ(samples(300, 3), 3 * 128);
  EXPECT_EQ(samples(2, 16), 16 * 8);
  EXPECT_EQ(samples(0, 16), 16 * 8192);
}

void expect_refused(const EngineOptions& options, const std::string& key) {
  try {
    make_engine(make_problem("softmax", "gaussian", 3, 2, 2), options);
    ADD_FAILURE() << key << " was accepted";
  } catch (const OptionError& error) {
    EXPECT_EQ(error.key(), key);
  }
}

TEST(Qmc, RefusesBadOptionsByName) {
  EngineOptions good = engine_options(1000, 1);
  good.engine = EngineName::qmc;
  EXPECT_EQ(make_engine(make_problem("softmax", "gaussian", 3, 2, 2), good)->name(), "qmc");
  for (const int randomisations : {-1, 0, 1, 5000}) {
    EngineOptions options = good;
    options.randomisations = randomisations;
    expect_refused(options, "run.randomisations");
  }
  EngineOptions options = good;
  options.samples = 1;
  expect_refused(options, "run.samples");
  options = good;
  options.memory = -1;
  expect_refused(options, "program.memory");
}

}  // namespace
}  // namespace headflow::qmc_test
