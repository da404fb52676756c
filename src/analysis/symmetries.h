#pragma once

// Directions along which the loss cannot change, whatever the engine's nodes say.

#include <vector>

#include "model/problem.h"

namespace headflow {

/// Antisymmetric A, orthonormal as matrices, such that theta and e^A theta have the same law:
/// A mean_k = 0 and A Sigma_k = Sigma_k A for every component of a mixture of Gaussians; of an
/// isotropic Gaussian all of them. None for a prior that is no mixture.
std::vector<Matrix> feature_rotations(const Prior& prior);

/// Columns: an orthonormal basis, in a Hessian's coordinates, of the directions in which the loss
/// is flat by symmetry: rotations of the basis of R, rotations of the features that leave the prior
/// as it is, and what the activation knows of (for B-softmax a common shift of the biases).
Matrix symmetry_directions(const Problem& problem, const Point& point,
                           const std::vector<Eigen::Index>& coordinates);

}  // namespace headflow
