#include "model/prior.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "support/effort.h"
#include "support/problems.h"

namespace headflow::prior_test {
namespace {

using testing::problem_options;
using testing::row;

TEST(Prior, FlippingSpikeHasTwoFeatures) {
  const Problem problem([] {
    ProblemOptions options = problem_options("softmax", "flipping", 4, 2, 2);
    options.prior_parameters["nu"] = row({3.0, 0.5});
    return options;
  }());
  EXPECT_TRUE(problem.prior().mean().isApprox(Eigen::Vector2d(std::sqrt(3.0), 0.0)));
  EXPECT_NEAR(problem.prior().covariance()(1, 1), 0.5, 1e-15);
  EXPECT_NEAR(problem.prior().covariance()(0, 0), 0.0, 1e-15);
}

TEST(Prior, FlippingSpikeWithMoreFeaturesIsUniformOnTheAxes) {
  const Problem problem(problem_options("softmax", "flipping", 4, 2, 4));
  EXPECT_TRUE(problem.prior().mean().isApprox(Vector::Constant(4, std::sqrt(2.0) / 4)));
}

TEST(Prior, GaussianVariancesAreLinear) {
  ProblemOptions options = problem_options("softmax", "gaussian", 4, 2, 3);
  options.prior_parameters["nu"] = row({20.0, 1.0});
  const Problem problem(options);
  EXPECT_TRUE(problem.prior().covariance().diagonal().isApprox(Eigen::Vector3d(20.0, 10.5, 1.0)));
}

TEST(Prior, MixtureOfGaussiansAndAtoms) {
  ProblemOptions options = problem_options("softmax", "mixture", 4, 2, 2);
  Matrix means(2, 2), covariances(4, 2);
  means << 1, 2, -1, 0;
  covariances << 2, 1, 1, 3, 0, 0, 0, 0;
  options.prior_parameters = {{"means", means}, {"covariances", covariances}};
  const Problem problem(options);
  const auto& mixture = *problem.prior().mixture();
  ASSERT_EQ(mixture.components().size(), 2u);
  const MixtureComponent& gaussian = mixture.components()[0];
  EXPECT_TRUE((gaussian.factor * gaussian.factor.transpose()).isApprox(covariances.topRows(2)));
  EXPECT_EQ(mixture.components()[1].factor.cols(), 0);  // an atom
  EXPECT_EQ(mixture.components()[1].weight, 0.5);
  Matrix covariance(2, 2);  // E Cov + Cov E
  covariance << 1 + 1, 0.5 + 1, 0.5 + 1, 1.5 + 1;
  EXPECT_TRUE(mixture.covariance().isApprox(covariance));
}

TEST(Prior, MixtureRulesAreChecked) {
  const auto complaint = [](const char* key, const auto& change) {
    ProblemOptions options = problem_options("softmax", "mixture", 4, 2, 2);
    change(options.prior_parameters);
    try {
      const Problem problem(options);
    } catch (const OptionError& e) {
      EXPECT_EQ(e.key(), key);
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  const auto says = [&](const char* key, const char* words, const auto& change) {
    EXPECT_NE(complaint(key, change).find(words), std::string::npos) << complaint(key, change);
  };
  says("problem.means", "missing", [](auto& p) { p.erase("means"); });
  says("problem.means", "2 numbers", [](auto& p) { p["means"] = Matrix::Ones(3, 3); });
  says("problem.means", "finite", [](auto& p) { p["means"](0, 0) = NAN; });
  says("problem.covariances", "missing", [](auto& p) { p.erase("covariances"); });
  says("problem.covariances", "6 rows", [](auto& p) { p["covariances"] = Matrix::Ones(4, 2); });
  says("problem.covariances", "number 2 must be symmetric",
       [](auto& p) { p["covariances"](2, 1) += 0.1; });
  says("problem.covariances", "number 3 must not have a negative eigenvalue",
       [](auto& p) { p["covariances"].bottomRows(2) = -Matrix::Identity(2, 2); });
  says("problem.weights", "list of 3", [](auto& p) { p["weights"] = row({0.5, 0.5}); });
  says("problem.weights", "sum to one", [](auto& p) { p["weights"] = row({0.5, 0.5, 0.5}); });
  says("problem.weights", "negative", [](auto& p) { p["weights"] = row({1.5, 0.5, -1}); });
}

// Sample mean and covariance of 400,000 draws within 5 standard errors; 5 priors with 14 numbers
// each: false-alarm rate 4e-5.
TEST(Prior, SamplesHaveTheStatedMoments) {
  for (const char* name : {"flipping", "gaussian", "full", "discrete", "mixture"}) {
    SCOPED_TRACE(name);
    const int F = 3, N = testing::by_effort(20'000, 400'000, 400'000);
    const Problem problem(problem_options("softmax", name, 4, 2, F));
    const Prior& prior = problem.prior();
    Vector sum = Vector::Zero(F);
    Matrix products = Matrix::Zero(F, F), squares = Matrix::Zero(F, F);
    for (int i = 0; i < N; ++i) {
      RandomStream stream({9, Purpose::test, 0}, static_cast<std::uint64_t>(i));
      double z[3], theta[3];
      const double u = stream.uniform();
      for (double& x : z) x = stream.normal();
      prior.sample(u, z, theta);
      const Vector centred = Eigen::Map<Vector>(theta, F) - prior.mean();
      sum += centred;
      const Matrix product = centred * centred.transpose();
      products += product;
      squares += product.cwiseProduct(product);
      EXPECT_TRUE((Eigen::Map<Vector>(theta, F).cwiseAbs().array() <=
                   prior.largest(kLargestNormal).array() + 1e-12)
                      .all());
    }
    for (int f = 0; f < F; ++f) {
      EXPECT_NEAR(sum[f] / N, 0.0, 5 * std::sqrt(prior.covariance()(f, f) / N));
      for (int k = 0; k < F; ++k) {
        const double mean = products(f, k) / N;
        const double error = std::sqrt(std::max(0.0, squares(f, k) / N - mean * mean) / N);
        EXPECT_NEAR(mean, prior.covariance()(f, k), 5 * error + 1e-12);
      }
    }
  }
}

// A law that is given by its sampler, and ways to state it wrongly.
TEST(Prior, OfOneUniformNumberMustBeAsItSays) {
  const auto circle = [](double u, double* theta) {
    theta[0] = 2 * std::cos(2 * M_PI * u);
    theta[1] = 2 * std::sin(2 * M_PI * u);
  };
  const Vector zero = Vector::Zero(2), two = Vector::Constant(2, 2.0);
  const Matrix covariance = 2 * Matrix::Identity(2, 2);
  EXPECT_EQ(prior_of_uniform(zero, covariance, two, circle)->covariance(), covariance);
  EXPECT_THROW(prior_of_uniform(two / 20, covariance, two, circle), Error);
  EXPECT_THROW(prior_of_uniform(zero, 1.1 * covariance, two, circle), Error);
  EXPECT_THROW(prior_of_uniform(zero, covariance, 0.9 * two, circle), Error);
  EXPECT_THROW(prior_of_uniform(zero, covariance, Vector::Ones(3), circle), Error);
  EXPECT_THROW(
      prior_of_uniform(zero, covariance, two, [](double, double* x) { x[0] = x[1] = NAN; }), Error);
}

}  // namespace
}  // namespace headflow::prior_test
