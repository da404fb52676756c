// A discrete theta: points (rows) with weights.

#include <cmath>

#include "core/error.h"
#include "model/prior.h"

namespace headflow {
namespace {

std::shared_ptr<const Prior> make_discrete(int F, const PriorParameters& parameters) {
  const auto given = parameters.find("points");
  if (given == parameters.end()) {
    throw OptionError("problem.points", "",
                      "the discrete prior needs points = [[...], ...], one row of F numbers each");
  }
  const Matrix& points = given->second;
  if (points.cols() != F || points.rows() == 0) {
    throw OptionError("problem.points", parameter_text(points),
                      fmt::format("each point must have {0} numbers, as features = {0}", F));
  }
  if (!points.allFinite()) {
    throw OptionError("problem.points", parameter_text(points), "must be finite");
  }
  const auto count = static_cast<int>(points.rows());
  Vector weights = Vector::Constant(count, 1.0 / count);
  if (parameters.contains("weights")) {
    weights = vector_parameter(parameters, "weights", count);
    const auto fail = [&](const std::string& rule) {
      throw OptionError("problem.weights", parameter_text(weights.transpose()), rule);
    };
    if (!(weights.minCoeff() >= 0.0)) fail("weights must not be negative");
    if (!(std::abs(weights.sum() - 1.0) <= 1e-9)) {
      fail(fmt::format("weights must sum to one (they sum to {:.10g})", weights.sum()));
    }
    weights /= weights.sum();
  }
  std::vector<MixtureComponent> atoms;
  for (int k = 0; k < count; ++k) {
    if (weights[k] > 0.0) atoms.push_back({weights[k], points.row(k), Matrix(F, 0)});
  }
  return std::make_shared<const GaussianMixture>(std::move(atoms));
}

}  // namespace

const PriorInfo& discrete_prior() {
  static const PriorInfo info{
      "discrete",
      "theta = points_k with probability weights_k",
      {{"points", "support, one row of F numbers a point"},
       {"weights", "probabilities of the points, summing to one (equal if not given)"}},
      make_discrete};
  return info;
}

}  // namespace headflow
