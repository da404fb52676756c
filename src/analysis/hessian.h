#pragma once

// The Hessian of the loss in the trained coordinates, its spectrum, and what its eigenvectors
// mean in the language of the model.

#include <string>
#include <utility>
#include <vector>

#include "expectation/engine.h"

namespace headflow {

struct Hessian {
  Matrix matrix;                          ///< symmetric, in the coordinates below
  Vector eigenvalues;                     ///< ascending
  Matrix eigenvectors;                    ///< columns
  std::vector<Eigen::Index> coordinates;  ///< positions in a packed Point that are trained
  double asymmetry = 0;                   ///< largest |H - H^T| before it was made symmetric
  Point shape;                            ///< a point of the problem
  /// What a rougher rule would have changed, where the engine tells; else empty.
  Matrix change;

  /// How far eigenvalues near zero may be from where they are found, by `change`: to first order
  /// among themselves, to second order through the others.
  double error_near_zero() const;
  /// An eigenvector as a Point.
  Point mode(Eigen::Index k) const;
};

enum class SecondDerivatives {
  best,         ///< exact where the engine has them
  differences,  ///< of gradients, good to about 1e-9: several times cheaper for softmax
};

/// Throws Error if the activation has kinks.
void check_second_derivatives(const Problem& problem);

/// By exact second derivatives where the engine has them, else by differences of gradients.
/// Cost: one product for each coordinate; at R = 0 one for each row of R.
Hessian hessian(Engine& engine, const Point& point,
                SecondDerivatives how = SecondDerivatives::best);

/// Shares of the squared norm of one eigenvector, or of a space of them, which sum to 1.
struct ModeShape {
  double m = 0, R = 0;
  std::vector<std::pair<std::string, double>> blocks;  ///< of each block of the activation
  double along = 0;    ///< of the largest of m, R and blocks of heads: the part that is equal
  double global = 0;   ///< share of blocks that are not one for each head
  Vector direction;    ///< unit vector of features that carries most of m; empty if m = 0
  double carried = 0;  ///< share of m that this direction carries
  Vector features;     ///< share of each feature in m; empty if m = 0

  double of_blocks() const;  ///< share of all blocks
  std::string text() const;  ///< "m, across heads, feature 2"
};
ModeShape mode_shape(const std::vector<Point>& modes);
inline ModeShape mode_shape(const Point& mode) { return mode_shape(std::vector{mode}); }

}  // namespace headflow
