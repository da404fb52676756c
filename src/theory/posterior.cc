#include "theory/posterior.h"

#include "core/error.h"
#include "theory/log_evidence.h"

namespace headflow {

Vector bayes_posterior(const Problem& problem, const Matrix& tokens) {
  const auto* prior = problem.prior().mixture();
  if (!prior) throw Error("the Bayes posterior needs a prior of atoms and Gaussians");
  const LogEvidence log_evidence(*prior);
  Vector log_w(tokens.rows());
  for (Eigen::Index l = 0; l < tokens.rows(); ++l) log_w[l] = log_evidence(tokens.row(l));
  const Vector w = (log_w.array() - log_w.maxCoeff()).exp();
  return w / w.sum();
}

}  // namespace headflow
