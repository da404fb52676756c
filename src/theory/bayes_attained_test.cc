// B-softmax attains the Bayes risk of a discrete prior: with one head an atom, m_h = theta^h, R = 0
// and b_h = log P(theta^h) - |theta^h|^2 / 2, its attention is the posterior. Two computations that
// share no formula meet here: the factorised engine and bayes_risk.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expectation/factorised/factorised.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/random_problems.h"
#include "theory/bayes.h"

namespace headflow::bayes_attained_test {
namespace {

using testing::Draw;
using testing::flatten;

constexpr double kLossClose = 1e-8, kGradientClose = 1e-7;

/// The same code, for minutes in more dimensions.
int most_features() { return testing::by_effort(2, 3, 4); }

ProblemOptions with_atoms(const std::string& prior, int L, int F, const PriorParameters& parameters,
                          int atoms) {
  ProblemOptions options;
  options.activation = "b-softmax";
  options.prior = prior;
  options.tokens = L;
  options.heads = atoms;
  options.features = F;
  options.prior_parameters = parameters;
  return options;
}

enum class Bias { bayes, printed };

Point at_the_atoms(const Problem& problem, Bias bias) {
  const auto& atoms = problem.prior().mixture()->components();
  Point point = problem.zero_point();
  for (int h = 0; h < problem.H(); ++h) {
    const MixtureComponent& atom = atoms[static_cast<std::size_t>(h)];
    const double square = atom.mean.squaredNorm(), log_weight = std::log(atom.weight);
    point.m.row(h) = atom.mean;
    point["b"][h] = bias == Bias::bayes ? log_weight - square / 2 : -square * log_weight / 2;
  }
  return point;
}

struct Distance {
  double loss, gradient;
};

/// Of the loss from the Bayes risk, and of the gradient from zero.
Distance from_bayes(const ProblemOptions& options, Bias bias) {
  const Problem problem(options);
  EngineOptions engine_options = testing::engine_options(0, 1);
  engine_options.tolerance = 1e-9;
  Factorised engine(problem, engine_options);
  Evaluation e;
  engine.evaluate(at_the_atoms(problem, bias), {}, e);
  const BayesRisk bayes = bayes_risk(problem, {.tolerance = 1e-10});
  EXPECT_TRUE(bayes.tolerance_met);
  EXPECT_LE(e.loss_error, kLossClose);
  return {e.loss - bayes.risk, flatten(e.grad).cwiseAbs().maxCoeff()};
}

void expect_attained(const ProblemOptions& options) {
  const Distance distance = from_bayes(options, Bias::bayes);
  EXPECT_LE(std::abs(distance.loss), kLossClose);
  EXPECT_LE(distance.gradient, kGradientClose);
}

TEST(BayesAttained, FlippingSpike) {
  for (const int L : {1, 2, 3, 10, 100, 1000}) {
    SCOPED_TRACE(fmt::format("L {}", L));
    expect_attained(with_atoms("flipping", L, 2, {{"nu", testing::row({1.0, 3.0})}}, 2));
  }
}

TEST(BayesAttained, OneHotSpike) {
  for (int F = 2; F <= most_features(); ++F) {
    for (const int L : {2, 5, 100}) {
      SCOPED_TRACE(fmt::format("F {} L {}", F, L));
      expect_attained(with_atoms("flipping", L, F, {{"nu", testing::row({1.0})}}, F));
    }
  }
}

// Where weights and norms are unequal, the printed bias -|theta|^2 log P / 2 is not the minimum:
// its loss is above the risk by more than 1e-4 and its gradient is not zero.
TEST(BayesAttained, UnequalWeightsAndNorms) {
  for (const int atoms : {2, 3, 4, 5}) {
    for (const int L : {2, 5, 30}) {
      Draw draw(static_cast<std::uint64_t>(10 * atoms + L));
      const int F = std::min(atoms < 5 ? 3 : 2, most_features());
      SCOPED_TRACE(fmt::format("atoms {} L {} F {}", atoms, L, F));
      Matrix points = draw.normals(atoms, F);
      for (int k = 0; k < atoms; ++k) points.row(k) *= draw.uniform(0.5, 1.5);
      const auto options = with_atoms(
          "discrete", L, F, {{"points", points}, {"weights", draw.weights(atoms)}}, atoms);
      expect_attained(options);
      const Distance printed = from_bayes(options, Bias::printed);
      EXPECT_GT(printed.loss, 1e-4);
      EXPECT_GT(printed.gradient, 1e-3);
    }
  }
}

}  // namespace
}  // namespace headflow::bayes_attained_test
