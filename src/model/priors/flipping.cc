// The flipping spike. F = 2: theta = (sqrt nu1, +-sqrt nu2), signs equally likely.
// F > 2: theta uniform on {sqrt(nu) e_f}.

#include <cmath>

#include "core/error.h"
#include "model/prior.h"

namespace headflow {
namespace {

std::shared_ptr<const Prior> make_flipping(int F, const PriorParameters& parameters) {
  if (F < 2) {
    throw OptionError("problem.features", fmt::format("{}", F),
                      "the flipping spike needs at least 2 features");
  }
  const Vector nu = signal_strengths(parameters);
  const double nu1 = nu[0], nu2 = nu[nu.size() - 1];
  if (F > 2 && nu1 != nu2) {
    throw OptionError("problem.nu", parameter_text(nu.transpose()),
                      "the flipping spike with more than 2 features has a single strength");
  }
  std::vector<MixtureComponent> atoms;
  const Matrix none(F, 0);
  if (F == 2) {
    for (const double sign : {1.0, -1.0}) {
      atoms.push_back({0.5, Eigen::Vector2d(std::sqrt(nu1), sign * std::sqrt(nu2)), none});
    }
  } else {
    for (int f = 0; f < F; ++f) {
      atoms.push_back({1.0 / F, std::sqrt(nu1) * Vector::Unit(F, f), none});
    }
  }
  return std::make_shared<const GaussianMixture>(std::move(atoms));
}

}  // namespace

const PriorInfo& flipping_prior() {
  static const PriorInfo info{
      "flipping",
      "F = 2: theta = (sqrt nu1, +-sqrt nu2); F > 2: uniform on {sqrt(nu) e_f}",
      {{"nu", "signal strengths, [nu1, nu2] or one number", both_strengths}},
      make_flipping};
  return info;
}

}  // namespace headflow
