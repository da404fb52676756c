// The factorised engine at extreme points: right, or refused, never wrong with a small error.

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "expectation/factorised/factorised.h"
#include "expectation/monte_carlo.h"
#include "support/effort.h"
#include "support/problems.h"

namespace headflow {
namespace {

using factorised::LawQuadrature;
using factorised::LossAndBars;
using factorised::Parameters;
using factorised::QuadratureProblem;
using factorised::SignalComponents;
using factorised::TokenLaws;
using testing::row;

ProblemOptions flipping(const std::string& activation, int L, double nu1, double nu2) {
  ProblemOptions options = testing::problem_options(activation, "flipping", L, 2, 2);
  options.prior_parameters["nu"] = row({nu1, nu2});
  return options;
}

Point point_of(const Problem& problem, std::initializer_list<double> m, double R,
               std::initializer_list<double> b) {
  Point point = problem.start_point();  // v = 1
  std::copy(m.begin(), m.end(), point.m.data());
  if (point.blocks.has("b")) std::copy(b.begin(), b.end(), point["b"].data());
  point.R = R * Matrix::Identity(problem.H(), problem.H());
  return point;
}

EngineOptions options_of(EngineName engine, std::int64_t samples = 0) {
  EngineOptions options;
  options.engine = engine;
  options.samples = samples;
  return options;
}

Evaluation evaluation(const Problem& problem, const EngineOptions& options, const Point& point) {
  Evaluation out;
  make_engine(problem, options)->evaluate(point, {.gradient_error = true}, out);
  return out;
}

/// The engine agrees with Monte Carlo within its error and five standard errors (false alarms:
/// 6e-7 for the loss), or refuses. Returns whether it answered.
bool agrees_or_refuses(const Problem& problem, const Point& point) {
  Evaluation exact;
  try {
    EngineOptions options = options_of(EngineName::factorised);
    options.tolerance = 1e-3;
    exact = evaluation(problem, options, point);
  } catch (const Error&) {
    return false;
  }
  const Evaluation sampled = evaluation(problem, options_of(EngineName::mc, 20'000), point);
  EXPECT_NEAR(exact.loss, sampled.loss, exact.loss_error + 5 * sampled.loss_error + 3e-4);
  return true;
}

TEST(FactorisedExtremes, CommonShiftOfBChangesNothing) {
  const Problem problem(flipping("b-softmax", 4, 2, 2));
  const Point plain = point_of(problem, {1, 0.5, 1, -0.5}, 1, {0.3, -0.2});
  const Evaluation expected = evaluation(problem, options_of(EngineName::factorised), plain);
  for (const double shift : {-3000.0, -800.0, 650.0, 800.0, 1e6}) {
    Point shifted = plain;
    shifted["b"].array() += shift;
    const Evaluation found = evaluation(problem, options_of(EngineName::factorised), shifted);
    EXPECT_NEAR(found.loss, expected.loss, 1e-9) << shift;
    EXPECT_LT((found.grad.m - expected.grad.m).cwiseAbs().maxCoeff(), 1e-8) << shift;
    EXPECT_LT(found.loss_error, 1e-6);
  }
}

TEST(FactorisedExtremes, SeparatedComponents) {
  // One head sees theta clearly and wins: no loss is left.
  const Problem clear(flipping("b-softmax", 4, 2500, 0));
  const Evaluation none = evaluation(clear, options_of(EngineName::factorised),
                                     point_of(clear, {20, 0, 20, 0}, 0, {0, 0}));
  EXPECT_NEAR(none.loss, 0, 1e-6);
  EXPECT_LT(none.loss_error, 1e-6);

  // Sinks as high as the signal.
  const Problem sinks(flipping("softmax-1", 4, 1e6, 0));
  EXPECT_TRUE(agrees_or_refuses(sinks, point_of(sinks, {1, 0.5, 1, -0.5}, 1, {900, 1000})));
  EXPECT_TRUE(agrees_or_refuses(sinks, point_of(sinks, {1, 0.5, 1, -0.5}, 1, {1001, 999})));
  // Scores of components that are thousands apart.
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    const Problem apart(flipping(activation, 5, 1e6, 1e6));
    EXPECT_TRUE(agrees_or_refuses(apart, point_of(apart, {1, 0.5, 1, -0.5}, 1, {0, 100})));
  }
}

TEST(FactorisedExtremes, LargeVariances) {
  ProblemOptions options = testing::problem_options("softmax", "flipping", 100, 1, 2);
  const Problem one(options);
  EXPECT_TRUE(agrees_or_refuses(one, point_of(one, {30, 0}, 1, {0})));
  if (testing::effort() == testing::Effort::sanitized) return;
  EXPECT_TRUE(agrees_or_refuses(one, point_of(one, {140, 20}, 1, {0})));
  for (const char* activation : {"softmax-1", "b-softmax"}) {
    const Problem two(flipping(activation, 10, 2, 2));
    agrees_or_refuses(two, point_of(two, {15, 10, -8, 5}, 0, {300, -300}));
  }
}

TEST(FactorisedExtremes, TooLargeIsRefused) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    for (const double size : {1e4, 1e10, 1e100, 1e200}) {
      const Problem problem(flipping(activation, 4, 2, 2));
      const Point point = point_of(problem, {size, 0, 0, size}, 1, {0, 0});
      EXPECT_THROW(evaluation(problem, options_of(EngineName::factorised), point), Error) << size;
    }
  }
}

TEST(FactorisedExtremes, NothingThatIsNotFinite) {
  const Problem problem(flipping("softmax-1", 4, 2, 2));
  Point point = point_of(problem, {1, 0.5, 1, -0.5}, 1, {0, 0});
  point["v"][0] = 1e200;
  for (const EngineName engine : {EngineName::factorised, EngineName::qmc, EngineName::mc}) {
    EXPECT_THROW(evaluation(problem, options_of(engine), point), NotFinite) << to_string(engine);
  }
  EngineOptions options = options_of(EngineName::automatic);
  EXPECT_THROW(make_engine(problem, options, {&point, false}), Error);
}

/// Quadratures see nodes that are in the wrong place, by sum rules that hold at any point.
TEST(FactorisedExtremes, MisplacedNodesAreSeen) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    const Problem problem(flipping(activation, 5, 2, 2));
    const auto& prior = *problem.prior().mixture();
    const SignalComponents signal(prior);
    const Workers workers;
    const Factorisation kind = problem.activation().factorisation();
    const auto offset = [&](const char* name) {
      const BlockLayout::Entry* entry = problem.layout()->find(name);
      return entry ? static_cast<int>(entry->offset) : -1;
    };
    const QuadratureProblem shape{5,       2,        {offset("b"), offset("v")},
                                  &signal, &workers, factorised::kMostWork};
    const auto laws_at = [&](double scale, double shift) {
      Parameters<double> at;
      at.H = at.F = 2;
      at.m = {scale, 0.5 * scale, scale, -0.5 * scale};
      at.R = {scale, 0, 0, scale};
      TokenLaws<double> laws;
      factorised::token_laws(signal, at, laws);
      for (double& mean : laws.mu) mean += shift;
      return laws;
    };
    std::vector<double> blocks = {0.5, 0.1, 1.0};  // b and v, as many as there are
    blocks.resize(static_cast<std::size_t>(problem.layout()->size()));
    const TokenLaws<double> here = laws_at(1, 0), wider = laws_at(4, 0), shifted = laws_at(1, 8);
    const auto plan = std::holds_alternative<JointlyNormalised>(kind)
                          ? factorised::joint_quadrature
                          : factorised::heads_quadrature;
    const std::unique_ptr<LawQuadrature> nodes = plan(shape, here, blocks, 18.0);
    ASSERT_TRUE(nodes);
    LossAndBars<double> out;
    nodes->evaluate(here, blocks, true, out);
    EXPECT_LT(out.defect, 1e-7) << activation;
    nodes->evaluate(wider, blocks, true, out);
    EXPECT_GT(out.defect, 1e-3) << activation;
    nodes->evaluate(shifted, blocks, true, out);
    EXPECT_GT(out.defect, 1e-3) << activation;
  }
}

}  // namespace
}  // namespace headflow
