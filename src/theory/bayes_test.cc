#include "theory/bayes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/random.h"
#include "support/effort.h"
#include "support/problems.h"
#include "theory/log_gamma.h"

namespace headflow::bayes_test {
namespace {

using testing::problem_options;
using testing::row;

Problem make_problem(const std::string& prior, int L, int F, const PriorParameters& parameters) {
  ProblemOptions options = problem_options("softmax", prior, L, 2, F);
  options.prior_parameters = parameters;
  return Problem(options);
}

/// log w from the two Gaussian densities of the model, nothing simplified.
class PlainEvidence {
 public:
  explicit PlainEvidence(const Problem& problem) {
    const auto& mixture = *problem.prior().mixture();
    for (const MixtureComponent& c : mixture.components()) {
      const Matrix C = Matrix::Identity(problem.F(), problem.F()) + c.factor * c.factor.transpose();
      terms_.push_back({c.weight / std::sqrt(C.determinant()), c.mean, C.inverse()});
    }
  }
  double operator()(const Vector& chi) const {
    double sum = 0;
    for (const Term& t : terms_) {
      const Vector d = chi - t.mean;
      sum += t.weight * std::exp(0.5 * chi.squaredNorm() - 0.5 * d.dot(t.inverse * d));
    }
    return sum;
  }

 private:
  struct Term {
    double weight;
    Vector mean;
    Matrix inverse;
  };
  std::vector<Term> terms_;
};

struct Simulated {
  double risk, error;
};

/// The loss of the posterior on sequences, as the model defines it.
Simulated simulate(const Problem& problem, int sequences) {
  sequences = testing::by_effort(sequences / 4, sequences, sequences);
  const PlainEvidence evidence(problem);
  const int L = problem.L(), F = problem.F();
  double sum = 0, squares = 0;
  Vector theta(F), normals(F), w(L);
  for (int i = 0; i < sequences; ++i) {
    RandomStream stream({77, Purpose::test, 0}, static_cast<std::uint64_t>(i));
    const int relevant = static_cast<int>(stream.uniform() * L);
    const double uniform = stream.uniform();
    for (double& x : normals) x = stream.normal();
    problem.prior().sample(uniform, normals.data(), theta.data());
    for (int l = 0; l < L; ++l) {
      for (double& x : normals) x = stream.normal();
      if (l == relevant) normals += theta;
      w[l] = evidence(normals);
    }
    w /= w.sum();
    w[relevant] -= 1.0;
    sum += w.squaredNorm();
    squares += w.squaredNorm() * w.squaredNorm();
  }
  const double mean = sum / sequences;
  return {mean, std::sqrt((squares / sequences - mean * mean) / sequences)};
}

Problem discrete(int L) {
  Matrix points(4, 3);
  points << 1, 0.5, 0, -1, 1, 0.3, 0.5, -2, 1, 0, 0, 0;
  return make_problem("discrete", L, 3,
                      {{"points", points}, {"weights", row({0.1, 0.4, 0.3, 0.2})}});
}

Problem full_gaussian(int L) {
  Matrix covariance(2, 2);
  covariance << 2, 0.7, 0.7, 1;
  return make_problem("gaussian", L, 2, {{"covariance", covariance}, {"mean", row({0.5, -1})}});
}

Problem mixture(int L) {
  Matrix means(3, 2), covariances(6, 2);
  means << 1, 0, -1, 1, 0.5, -2;
  covariances << 2, 0.5, 0.5, 1, 0.3, 0, 0, 3, 0, 0, 0, 0;
  return make_problem(
      "mixture", L, 2,
      {{"means", means}, {"covariances", covariances}, {"weights", row({0.3, 0.3, 0.4})}});
}

Problem spike(int L, double nu1, double nu2) {
  return make_problem("flipping", L, 2, {{"nu", row({nu1, nu2})}});
}

std::vector<std::pair<std::string, Problem>> all_kinds(int L) {
  return {{"flipping", spike(L, 2, 2)},
          {"oblique", spike(L, 3, 0.5)},
          {"one-hot", make_problem("flipping", L, 3, {{"nu", row({4})}})},
          {"gaussian", make_problem("gaussian", L, 2, {{"nu", row({5, 1})}})},
          {"full", full_gaussian(L)},
          {"discrete", discrete(L)},
          {"mixture", mixture(L)}};
}

TEST(LogGamma, KnownValues) {
  for (const double x : {0.1, 0.5, 1.0, 3.7, 11.9, 12.1, 40.0}) {
    EXPECT_NEAR(log_gamma(x).real(), std::lgamma(x), 1e-14 * (1 + std::abs(std::lgamma(x))));
  }
  for (const double t : {0.1, 1.0, 5.0, 20.0}) {  // |Gamma(1/2 + it)|^2 = pi / cosh(pi t)
    const double exact = 0.5 * std::log(std::numbers::pi / std::cosh(std::numbers::pi * t));
    EXPECT_NEAR(log_gamma({0.5, t}).real(), exact, 1e-13);
    const std::complex<double> z(0.3, t);  // Gamma(z + 1) = z Gamma(z)
    EXPECT_NEAR(std::abs(std::exp(log_gamma(z + 1.0) - log_gamma(z)) - z), 0.0, 1e-13 * (1 + t));
  }
}

// |difference| < 4 standard errors, 8 comparisons: false-alarm rate 5e-4. The control is the risk
// of a signal that is 10 % stronger.
TEST(Bayes, AgreesWithSimulatedSequences) {
  for (const auto& [name, problem] : all_kinds(5)) {
    SCOPED_TRACE(name);
    const BayesRisk risk = bayes_risk(problem, {});
    const Simulated simulated = simulate(problem, 60000);
    EXPECT_LT(std::abs(risk.risk - simulated.risk), 4 * simulated.error);
    EXPECT_TRUE(risk.tolerance_met);
    EXPECT_EQ(risk.error_kind, ErrorKind::refinement);
  }
  const Problem many = make_problem("gaussian", 5, 20, {{"nu", row({1, 0.1})}});
  const Simulated simulated = simulate(many, 20000);
  EXPECT_LT(std::abs(bayes_risk(many, {}).risk - simulated.risk), 4 * simulated.error);

  const Simulated weaker = simulate(spike(5, 2, 2), 60000);
  EXPECT_GT(std::abs(bayes_risk(spike(5, 2.2, 2.2), {}).risk - weaker.risk), 4 * weaker.error);
}

// Products of blocks and Mellin-Barnes integrals against one grid for everything.
TEST(Bayes, BlocksAgreeWithOneGrid) {
  for (const int L : {2, 7, 1000, 1'000'000}) {
    for (const auto& [name, problem] : all_kinds(L)) {
      if (name == "one-hot" && L != 7) continue;  // a grid in three dimensions is slower
      if (name == "discrete") continue;           // one grid and an atom at 0
      SCOPED_TRACE(fmt::format("{} L {}", name, L));
      const BayesRisk blocks = bayes_risk(problem, {});
      const BayesRisk grid = bayes_risk(problem, {.tolerance = 1e-9, .method = BayesMethod::grid});
      EXPECT_NEAR(blocks.risk, grid.risk, 1e-12);
      EXPECT_LE(blocks.error, 1e-9);
      EXPECT_LE(grid.error, 1e-9);
    }
  }
  EXPECT_NEAR(bayes_risk(discrete(7), {}).risk,
              bayes_risk(discrete(7), {.tolerance = 1e-9, .method = BayesMethod::grid}).risk,
              1e-12);
}

TEST(Bayes, OneTokenIsFound) {
  const BayesRisk risk = bayes_risk(spike(1, 2, 2), {});
  EXPECT_EQ(risk.risk, 0.0);
  EXPECT_EQ(risk.error, 0.0);
  EXPECT_TRUE(risk.tolerance_met);
}

TEST(Bayes, WithoutSignalOneGuesses) {
  for (const int L : {2, 4, 1000, 1'000'000}) {
    EXPECT_NEAR(bayes_risk(spike(L, 0, 0), {}).risk, 1.0 - 1.0 / L, 1e-12);
    EXPECT_NEAR(bayes_risk(make_problem("gaussian", L, 5, {{"nu", row({0})}}), {}).risk,
                1.0 - 1.0 / L, 1e-12);
  }
}

// E (1 - P(eps))  over the two tokens' (chi_1, chi_2), token 1 relevant: a plain double integral.
TEST(Bayes, TwoTokensByADoubleIntegral) {
  const auto brute = [](const Problem& problem) {
    const PlainEvidence evidence(problem);
    const double step = 0.03, reach = 15.0;
    std::vector<double> w, phi;
    for (double x = -reach; x <= reach; x += step) {
      w.push_back(evidence(Vector::Constant(1, x)));
      phi.push_back(std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi) * step);
    }
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      for (std::size_t j = 0; j < w.size(); ++j) {
        sum += phi[i] * w[i] * phi[j] * (w[j] / (w[i] + w[j]));
      }
    }
    return sum;
  };
  Matrix points(2, 1), means(2, 1), covariances(2, 1);
  points << 2, -1;
  means << 1, -2;
  covariances << 1, 0;
  for (const Problem& problem :
       {make_problem("discrete", 2, 1, {{"points", points}, {"weights", row({0.3, 0.7})}}),
        make_problem("gaussian", 2, 1, {{"nu", row({2})}, {"mean", row({1})}}),
        make_problem("mixture", 2, 1, {{"means", means}, {"covariances", covariances}})}) {
    EXPECT_NEAR(bayes_risk(problem, {}).risk, brute(problem), 1e-11);
  }
}

// 1 - E P(eps) = 1 - int du e^u E_0[w^2 exp(-e^u w)] g^{L-1}: another form, and another rule.
TEST(Bayes, AMillionTokensInAnotherForm) {
  const int L = 1'000'000;
  for (const double nu : {2.0, 9.0, 25.0}) {
    double found = 0;
    const double du = 0.1, dz = 0.01;
    for (double u = -60; u < 40; u += du) {
      double k = 0, q = 0;
      for (double z = -14; z < 24; z += dz) {
        const double w = std::exp(std::sqrt(nu) * z - nu / 2), x = std::exp(u) * w;
        const double phi = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi) * dz;
        k += phi * w * w * std::exp(-x);
        q -= phi * std::expm1(-x);
      }
      if (q < 1) found += du * std::exp(u + (L - 1) * std::log1p(-q)) * k;
    }
    const Problem problem = make_problem(
        "gaussian", L, 1, {{"covariance", Matrix::Zero(1, 1)}, {"mean", row({std::sqrt(nu)})}});
    EXPECT_NEAR(bayes_risk(problem, {}).risk, 1.0 - found, 1e-10) << nu;
  }
}

TEST(Bayes, FallsWithTheSignal) {
  for (const char* prior : {"flipping", "gaussian"}) {
    double before = 1.0;
    for (const double nu : {0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0}) {
      const double risk = bayes_risk(make_problem(prior, 6, 3, {{"nu", row({nu})}}), {}).risk;
      EXPECT_LT(risk, before) << prior << " " << nu;
      EXPECT_GE(risk, 0.0);
      before = risk;
    }
  }
}

/// Gaussians and atoms at random, strengths from weak to strong.
Problem random_problem(std::uint64_t item) {
  RandomStream stream({5, Purpose::test, 1}, item);
  const int F = 1 + static_cast<int>(2 * stream.uniform());
  const int K = 1 + static_cast<int>(4 * stream.uniform());
  const int L = static_cast<int>(std::exp(std::log(2.0) + 9 * stream.uniform()));
  const double scale = std::exp(2.5 * stream.uniform() - 1.0);
  Matrix means(K, F), covariances = Matrix::Zero(K * F, F), weights(1, K);
  for (int k = 0; k < K; ++k) {
    weights(0, k) = stream.uniform();
    for (int f = 0; f < F; ++f) means(k, f) = scale * stream.normal();
    if (stream.uniform() < 0.5) continue;
    Matrix A(F, F);
    for (double& x : A.reshaped()) x = scale * stream.normal();
    covariances.middleRows(k * F, F) = A * A.transpose();
  }
  weights /= weights.sum();
  return make_problem("mixture", L, F,
                      {{"means", means}, {"covariances", covariances}, {"weights", weights}});
}

// Against a computation to 1e-12. The control: a hundredth of the error is often too little.
TEST(Bayes, ReportedErrorIsABound) {
  constexpr int kProblems = 120;
  int bounded = 0, hundredth = 0, met = 0;
  for (int i = 0; i < kProblems; ++i) {
    const Problem problem = random_problem(static_cast<std::uint64_t>(i));
    const double tolerance = i % 2 == 0 ? 1e-3 : 1e-6;
    const BayesRisk exact = bayes_risk(problem, {.tolerance = 1e-12, .method = BayesMethod::grid});
    const BayesRisk risk = bayes_risk(problem, {.tolerance = tolerance});
    EXPECT_LE(exact.error, 1e-12) << i;
    bounded += std::abs(risk.risk - exact.risk) <= risk.error;
    hundredth += std::abs(risk.risk - exact.risk) <= 0.01 * risk.error;
    met += risk.tolerance_met && risk.error <= tolerance;
  }
  EXPECT_GE(bounded, kProblems - 1);
  EXPECT_LT(hundredth, kProblems / 2);
  EXPECT_EQ(met, kProblems);
}

// A risk far below the tolerance is left out of the integral, and the error says so; covariances
// far wider than the noise do not lose the grid.
TEST(Bayes, ErrorCoversSmallRisksAndWideCovariances) {
  Matrix means(2, 2), covariances(4, 2);
  means << 1, 0, -20, 30;
  for (const double variance : {1e2, 1e4, 1e6}) {
    covariances << variance, 0, 0, 1, 2, 1, 1, variance;
    const Problem problem =
        make_problem("mixture", 300, 2, {{"means", means}, {"covariances", covariances}});
    const BayesRisk exact = bayes_risk(problem, {.tolerance = 1e-12});
    const BayesRisk risk = bayes_risk(problem, {.tolerance = 1e-3});
    EXPECT_TRUE(exact.tolerance_met && risk.tolerance_met);
    EXPECT_LE(std::abs(risk.risk - exact.risk), risk.error) << variance;
  }
  const Problem strong = spike(300, 40, 40);
  const BayesRisk risk = bayes_risk(strong, {.tolerance = 1e-3});
  EXPECT_LE(std::abs(risk.risk - bayes_risk(strong, {.tolerance = 1e-12}).risk), risk.error);
}

// Seven directions are beyond a grid. 4 standard errors, false-alarm rate 6e-5 twice.
TEST(Bayes, SaysWhenItOnlySamples) {
  const Matrix points = Matrix::Identity(7, 7) * 1.5 + Matrix::Constant(7, 7, 0.4);
  const Problem problem = make_problem("discrete", 4, 7, {{"points", points}});
  const BayesRisk risk = bayes_risk(problem, {});
  EXPECT_FALSE(risk.tolerance_met);
  EXPECT_EQ(risk.error_kind, ErrorKind::standard_error);
  EXPECT_NE(risk.method.find("sampling"), std::string::npos);
  EXPECT_LT(risk.error, 1e-3);
  const Simulated simulated = simulate(problem, testing::by_effort(6000, 60000, 60000));
  EXPECT_LT(std::abs(risk.risk - simulated.risk), 4 * std::hypot(simulated.error, risk.error));

  if (testing::effort() == testing::Effort::sanitized) return;  // the same code once more
  const Problem known = full_gaussian(1000);
  const BayesRisk sampled = bayes_risk(known, {.tolerance = 1e-9, .method = BayesMethod::sampling});
  EXPECT_LT(std::abs(sampled.risk - bayes_risk(known, {}).risk), 4 * sampled.error);
}

TEST(Bayes, ThreadsDoNotChangeBits) {
  for (const BayesMethod method : {BayesMethod::automatic, BayesMethod::sampling}) {
    const BayesRisk one = bayes_risk(mixture(4), {.tolerance = 1e-9, .method = method});
    const BayesRisk three =
        bayes_risk(mixture(4), {.tolerance = 1e-9, .method = method}, Context::threads(3));
    EXPECT_EQ(one.risk, three.risk);
    EXPECT_EQ(one.error, three.error);
  }
}

TEST(Bayes, BadTolerancesAreRejected) {
  for (const double tolerance : {0.0, 1e-13, 0.2, -1.0, double(NAN)}) {
    EXPECT_THROW(bayes_risk(spike(4, 2, 2), {.tolerance = tolerance}), OptionError);
  }
}

}  // namespace
}  // namespace headflow::bayes_test
