// The Bayes estimator against a posterior by brute force: sequences of D-dimensional tokens, and
// the density of all of them for each place and value of the signal, theta on a fine grid.

#include "theory/posterior.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "core/random.h"
#include "support/problems.h"

namespace headflow::posterior_test {
namespace {

using testing::row;

constexpr int kD = 12, kL = 4, kF = 2;

struct WeightedTheta {
  double weight;
  Vector theta;
};

/// Atoms, and for Gaussian components a trapezoid rule in each direction.
std::vector<WeightedTheta> grid(const GaussianMixture& prior) {
  std::vector<WeightedTheta> out;
  for (const MixtureComponent& c : prior.components()) {
    const auto n = c.factor.cols();
    if (n == 0) {
      out.push_back({c.weight, c.mean});
      continue;
    }
    constexpr double kStep = 0.25, kReach = 8;
    const int side = static_cast<int>(2 * kReach / kStep) + 1;
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < (n > 1 ? side : 1); ++j) {
        Vector z(n);
        z[0] = -kReach + kStep * i;
        if (n > 1) z[1] = -kReach + kStep * j;
        const double cell = std::pow(kStep / std::sqrt(2 * M_PI), static_cast<double>(n));
        out.push_back({c.weight * cell * std::exp(-z.squaredNorm() / 2), c.mean + c.factor * z});
      }
    }
  }
  return out;
}

Vector brute_force(const std::vector<WeightedTheta>& thetas, const Matrix& spikes,
                   const Matrix& X) {
  Vector density = Vector::Zero(X.rows());
  for (Eigen::Index eps = 0; eps < X.rows(); ++eps) {
    for (const WeightedTheta& t : thetas) {
      double exponent = 0;  // all tokens, up to what is common to every eps and theta
      for (Eigen::Index l = 0; l < X.rows(); ++l) {
        const Vector x = X.row(l);
        exponent += l == eps ? -0.5 * (x - spikes.transpose() * t.theta).squaredNorm()
                             : -0.5 * x.squaredNorm();
      }
      density[eps] += t.weight * std::exp(exponent + 0.5 * X.squaredNorm());
    }
  }
  return density / density.sum();
}

TEST(Posterior, AgainstBruteForceInDDimensions) {
  Matrix points(3, 2), covariances(4, 2), means(2, 2);
  points << 1, 0.5, -1.5, 0.3, 0.2, -1;
  means << 1, 0, -0.5, 0.5;
  covariances << 1, 0.3, 0.3, 0.5, 0.4, 0, 0, 0;
  const std::tuple<const char*, PriorParameters> priors[] = {
      {"flipping", {{"nu", row({2, 3})}}},
      {"discrete", {{"points", points}, {"weights", row({0.5, 0.3, 0.2})}}},
      {"gaussian", {{"nu", row({2, 1})}}},
      {"mixture", {{"means", means}, {"covariances", covariances}}}};
  for (const auto& [name, parameters] : priors) {
    SCOPED_TRACE(name);
    ProblemOptions options;
    options.prior = name;
    options.tokens = kL;
    options.features = kF;
    options.prior_parameters = parameters;
    const auto plain = *Problem(options).prior().mixture();
    const std::vector<WeightedTheta> thetas = grid(plain);
    RandomStream stream({5, Purpose::test, 0}, 0);
    for (int sequence = 0; sequence < 10; ++sequence) {
      Matrix spikes(kF, kD), X(kL, kD);
      for (double& x : spikes.reshaped()) x = stream.normal() / std::sqrt(kD);
      for (double& x : X.reshaped()) x = stream.normal();
      X.row(1) += 1.3 * spikes.row(0) - 0.8 * spikes.row(1);
      options.p = spikes * spikes.transpose();
      const Problem problem(options);
      const Matrix in_frame = X * spikes.transpose() * problem.p_root().inverse();
      const Vector formula = bayes_posterior(problem, in_frame);
      EXPECT_LT((formula - brute_force(thetas, spikes, X)).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_NEAR(formula.sum(), 1, 1e-14);
    }
  }
}

}  // namespace
}  // namespace headflow::posterior_test
