// A Gaussian theta. With nu: independent entries of variance linear from nu1 (f = 1) to
// nu2 (f = F). With covariance: N(mean, covariance).

#include <cmath>

#include "core/error.h"
#include "model/prior.h"

namespace headflow {
namespace {

std::shared_ptr<const Prior> make_gaussian(int F, const PriorParameters& parameters) {
  Vector mean = Vector::Zero(F);
  if (parameters.contains("mean")) mean = vector_parameter(parameters, "mean", F);

  const auto given = parameters.find("covariance");
  if (given == parameters.end()) {
    const Vector nu = signal_strengths(parameters);
    Vector variance = Vector::Constant(F, nu[0]);
    if (F > 1) variance = Vector::LinSpaced(F, nu[0], nu[nu.size() - 1]);
    return std::make_shared<const GaussianMixture>(
        std::vector<MixtureComponent>{{1.0, mean, Matrix(variance.cwiseSqrt().asDiagonal())}});
  }
  const Matrix& covariance = given->second;
  const auto fail = [&](const std::string& rule) {
    throw OptionError("problem.covariance", parameter_text(covariance), rule);
  };
  if (parameters.contains("nu")) fail("give either covariance or nu, not both");
  if (covariance.rows() != F || covariance.cols() != F) {
    fail(fmt::format("must be a {0} x {0} matrix, as features = {0}", F));
  }
  if (!covariance.allFinite()) fail("must be finite");
  if ((covariance - covariance.transpose()).cwiseAbs().maxCoeff() >
      1e-12 * covariance.cwiseAbs().maxCoeff()) {
    fail("must be symmetric");
  }
  const double smallest = smallest_eigenvalue(covariance);
  if (smallest < -1e-12 * covariance.cwiseAbs().maxCoeff()) {
    fail(fmt::format("must not have a negative eigenvalue (it has {:.3g})", smallest));
  }
  return std::make_shared<const GaussianMixture>(
      std::vector<MixtureComponent>{{1.0, mean, positive_square_root(covariance)}});
}

}  // namespace

const PriorInfo& gaussian_prior() {
  static const PriorInfo info{
      "gaussian",
      "theta ~ N(mean, covariance); with nu, variances linear from nu1 (f = 1) to nu2 (f = F)",
      {{"nu", "signal strengths, [nu1, nu2] or one number", both_strengths},
       {"mean", "mean of theta, a list of F numbers"},
       {"covariance", "covariance of theta, an F x F matrix, instead of nu"}},
      make_gaussian};
  return info;
}

}  // namespace headflow
