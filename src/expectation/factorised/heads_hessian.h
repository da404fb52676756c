#pragma once

// All second derivatives of the loss of heads that are normalised one by one. The loss is a sum
// over heads and pairs of heads, so that a law of one head meets its own term and H - 1 pairs, and
// a covariance of two heads meets one pair: with n laws of a head (a covariance for each kind of
// component, means, a bias) and k kinds, differences of first derivatives take 2 (2 n + k) pieces
// of work as large as a gradient, whatever H and F are. There are H (F + H) directions and more.
// Error: about 1e-8 of the scale of the second derivatives; what is not symmetric shows it.

#include "expectation/factorised/heads_terms.h"
#include "expectation/factorised/law_hessian.h"

namespace headflow::factorised {

/// As many gradients take as long.
double heads_hessian_cost(const QuadratureProblem& problem, const LawCoordinates& coordinates);

/// Leaves dE/dx and its derivative in the coordinates x of the laws.
void heads_hessian(const QuadratureProblem& problem, const HeadsPlan& plan,
                   const LawCoordinates& coordinates, const TokenLaws<double>& laws,
                   const std::vector<double>& blocks, Heads<double>& heads, Vector& gradient,
                   Matrix& second);

}  // namespace headflow::factorised
