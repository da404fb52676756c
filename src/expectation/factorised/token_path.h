#pragma once

// B-softmax with any number of heads: expectations over one token by quasi-random nodes, with
// derivatives along the path of every node.
//
// With the laws of weight_laws.h the loss depends on the nodes through t = log sum_h e^(chi_h +
// b_h) alone, and dt/dchi_h = p_h = e^(chi_h + b_h - t), so that a node needs H exponentials, a
// logarithm and one look at a table. (Price's theorem, as in joint.cc, has second derivatives in
// place of the nodes, and far larger errors where scores are large: 1e-2 with 10^7 nodes where this
// one has 1e-4 with 10^4.) Scores are chi = mu_c + A_c z with A_c = [m (I + Sigma_c)^(1/2), R], z
// in F + H dimensions: smooth for all m and R. z = V zeta, V the principal directions of the scores
// where the nodes were placed, so that the first coordinates of Sobol's sequence do most; every
// zeta comes with -zeta, and they are whitened: polynomials of degree 3 in z are exact.
//
// A_c is turned to where it is closest to that of the place (path_gauge.h), so that the discrete
// loss depends on the laws of the scores alone, as the loss does.
//
// At R = 0 the expectation over the H normals of R is taken exactly: grad_R E = 0, and the second
// derivatives along R are those of Price's theorem, E[(D'' - D') p_h p_h' + delta_hh' D' p_h] for
// every column.
//
// Cost: 2 nodes x covariances x (H exponentials, twice for nodes and their mirror images together),
// and nodes x H (F + H) multiplications, twice. Error: about N^(-0.6) at scores of deviation 10,
// and faster at small ones.

#include <memory>

#include "expectation/factorised/quadrature.h"
#include "expectation/factorised/token_nodes.h"

namespace headflow::factorised {

/// The largest and the smallest number of nodes for a problem, as a logarithm.
int most_path_nodes(const QuadratureProblem& problem, int features);
inline constexpr int kFewestPathNodes = 9;

/// Nodes for points near this one.
std::unique_ptr<Quadrature> token_path(const QuadratureProblem& problem,
                                       const std::shared_ptr<TokenNodes>& nodes,
                                       const Parameters<double>& point, int log2_nodes);

}  // namespace headflow::factorised
