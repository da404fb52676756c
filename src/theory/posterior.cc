#include "theory/posterior.h"

#include <Eigen/Cholesky>
#include <cmath>

#include "core/error.h"

namespace headflow {

Vector bayes_posterior(const Problem& problem, const Matrix& tokens) {
  const auto* prior = problem.prior().mixture();
  if (!prior) throw Error("the Bayes posterior needs a prior of atoms and Gaussians");
  // Per component, log of the integral of exp(theta . chi - |theta|^2 / 2).
  const auto K = static_cast<Eigen::Index>(prior->components().size());
  Matrix log_w(tokens.rows(), K);
  for (Eigen::Index k = 0; k < K; ++k) {
    const MixtureComponent& c = prior->components()[static_cast<std::size_t>(k)];
    const Eigen::Index n = c.factor.cols();
    const Matrix S = Matrix::Identity(n, n) + c.factor.transpose() * c.factor;
    const Eigen::LLT<Matrix> root(S);
    const Vector diagonal = root.matrixLLT().diagonal();
    const double log_det = 2 * diagonal.array().log().sum();
    for (Eigen::Index l = 0; l < tokens.rows(); ++l) {
      const Vector chi = tokens.row(l);
      double value = std::log(c.weight) + c.mean.dot(chi) - c.mean.squaredNorm() / 2;
      if (n > 0) {
        const Vector y = c.factor.transpose() * (chi - c.mean);
        value += 0.5 * (y.dot(root.solve(y)) - log_det);
      }
      log_w(l, k) = value;
    }
  }
  const Vector w = (log_w.array() - log_w.maxCoeff()).exp().rowwise().sum();
  return w / w.sum();
}

}  // namespace headflow
