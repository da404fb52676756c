#pragma once

#include "model/problem.h"

namespace headflow {

/// P(eps = l | sequence) of the Bayes estimator (proposition IV.1), from the tokens' components
/// chi*_l along the orthonormal frame of the hidden directions (L x F; frame.h). The estimate of
/// the label is the mean of the tokens under it. Throws Error for a prior that is no mixture of
/// Gaussians and atoms.
Vector bayes_posterior(const Problem& problem, const Matrix& tokens);

}  // namespace headflow
