// A mixture of Gaussians with any weights, means and full covariances. A covariance of zeros makes
// its component an atom.

#include <cmath>

#include "core/error.h"
#include "model/prior.h"

namespace headflow {
namespace {

Vector mixture_weights(const PriorParameters& parameters, int count) {
  if (!parameters.contains("weights")) return Vector::Constant(count, 1.0 / count);
  const Vector weights = vector_parameter(parameters, "weights", count);
  const auto fail = [&](const std::string& rule) {
    throw OptionError("problem.weights", parameter_text(weights.transpose()), rule);
  };
  if (!(weights.minCoeff() >= 0.0)) fail("weights must not be negative");
  if (!(std::abs(weights.sum() - 1.0) <= 1e-9)) {
    fail(fmt::format("weights must sum to one (they sum to {:.10g})", weights.sum()));
  }
  return weights / weights.sum();
}

/// A factor of the covariance; without columns if it is zero.
Matrix covariance_factor(const Matrix& covariance, Eigen::Index number) {
  const auto fail = [&](const std::string& rule) {
    throw OptionError("problem.covariances", parameter_text(covariance),
                      fmt::format("covariance number {} {}", number + 1, rule));
  };
  const double largest = covariance.cwiseAbs().maxCoeff();
  if (largest == 0.0) return Matrix(covariance.rows(), 0);
  if ((covariance - covariance.transpose()).cwiseAbs().maxCoeff() > 1e-12 * largest) {
    fail("must be symmetric");
  }
  const double smallest = smallest_eigenvalue(covariance);
  if (smallest < -1e-12 * largest) {
    fail(fmt::format("must not have a negative eigenvalue (it has {:.3g})", smallest));
  }
  return positive_square_root(covariance);
}

std::shared_ptr<const Prior> make_mixture(int F, const PriorParameters& parameters) {
  const auto given = [&](const char* name, const char* rule) -> const Matrix& {
    const auto it = parameters.find(name);
    if (it == parameters.end()) throw OptionError(fmt::format("problem.{}", name), "", rule);
    return it->second;
  };
  const Matrix& means =
      given("means", "the mixture prior needs means = [[...], ...], one row of F numbers each");
  if (means.cols() != F || means.rows() == 0) {
    throw OptionError("problem.means", parameter_text(means),
                      fmt::format("each mean must have {0} numbers, as features = {0}", F));
  }
  const Matrix& covariances =
      given("covariances", "the mixture prior needs one F x F matrix a mean, stacked");
  if (covariances.cols() != F || covariances.rows() != means.rows() * F) {
    throw OptionError("problem.covariances", parameter_text(covariances),
                      fmt::format("must be {} matrices of {} x {}, stacked: {} rows of {} numbers",
                                  means.rows(), F, F, means.rows() * F, F));
  }
  const auto finite = [](const char* key, const Matrix& value) {
    if (!value.allFinite()) throw OptionError(key, parameter_text(value), "must be finite");
  };
  finite("problem.means", means);
  finite("problem.covariances", covariances);

  const Vector weights = mixture_weights(parameters, static_cast<int>(means.rows()));
  std::vector<MixtureComponent> components;
  for (Eigen::Index k = 0; k < means.rows(); ++k) {
    Matrix factor = covariance_factor(covariances.middleRows(k * F, F), k);
    if (weights[k] > 0.0) components.push_back({weights[k], means.row(k), std::move(factor)});
  }
  return std::make_shared<const GaussianMixture>(std::move(components));
}

}  // namespace

const PriorInfo& mixture_prior() {
  static const PriorInfo info{
      "mixture",
      "theta ~ N(means_k, covariances_k) with probability weights_k",
      {{"means", "means of the Gaussians, one row of F numbers each"},
       {"covariances", "their F x F covariances, stacked; a matrix of zeros makes an atom"},
       {"weights", "probabilities of the Gaussians, summing to one (equal if not given)"}},
      make_mixture};
  return info;
}

}  // namespace headflow
