#pragma once

// Nodes that know what the loss depends on. Scores are A z with z standard normal, so their law
// depends on A A^T alone: A and A O, O orthogonal, are the same. Quasi-random nodes in z are not
// the same for both, and their gradient has a component along such turns that is nothing but error:
// the largest one where some directions of z hardly matter (R small), and one that a flow would
// follow round and round.
//
// So A is turned to where it is closest to a reference A0, that of the nodes, before it is used:
//   O = polar factor of X = A^T A0 + epsilon,   X = P S W^T,  O = P W^T.
// The discrete loss of A O is a smooth function of A A^T near the reference, but for turns among
// directions with squares of singular values below epsilon. Derivatives: for dA
//   dO = O Omega,  Omega S' + S' Omega = O^T dX - dX^T O,  S' = O^T X,
// which is a division by s_i + s_j in the basis W; once more differentiated, Omega S' + S' Omega =
// K gives dOmega with dK - dS' Omega - Omega dS' on the right.

#include "core/matrix.h"

namespace headflow::factorised {

class PathGauge {
 public:
  /// Around a reference, H x d.
  explicit PathGauge(Matrix reference) : reference_(std::move(reference)) {}

  /// What is needed at one A.
  struct Turned {
    Matrix A, O, W;
    Vector s;
    Matrix scores;  ///< A O
  };
  Turned turn(const Matrix& A) const;
  /// Makes A, as it is turned now, the reference.
  void recentre(const Matrix& A) { reference_ = turn(A).scores; }

  /// d(A O) for dA.
  Matrix tangent(const Turned& at, const Matrix& dA) const;
  /// The derivative with respect to A of a function whose derivative with respect to A O is `bar`.
  Matrix pull_back(const Turned& at, const Matrix& bar) const;
  /// The derivative of that along dA, `bar` being kept.
  Matrix pull_back_slope(const Turned& at, const Matrix& bar, const Matrix& dA) const;

 private:
  Matrix divided(const Turned& at, const Matrix& antisymmetric) const;

  Matrix reference_;
};

}  // namespace headflow::factorised
