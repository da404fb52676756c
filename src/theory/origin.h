#pragma once

// The loss near the unspecialised point m = 0, R = 0 in closed form (lemmas III.1 and A.5 of the
// paper, with its errata). With heads alike and attention 1/L there (for softmax-1, L v = L + e^b):
//   E = E_0 - g1 sum_h m_h . E theta + c1 sum_hh' (R R^T)_hh' + c1 sum_hh' m_h . m_h'
//     + (c2 + c4) sum_hh' m_h^T C m_h' - (c3 + c4) sum_h m_h^T C m_h + O(4),  C = E theta theta^T.

#include "model/problem.h"

namespace headflow {

/// Throws Error for an activation whose constants are not known.
OriginConstants origin_constants(const Problem& problem, const Point& here);

/// m = 0, R = 0, and attention 1/L by heads that all have the blocks of the first one; of these as
/// many as can be kept. Without blocks: those that training starts with.
Point origin(const Problem& problem, const Blocks& blocks);
Point origin(const Problem& problem);
/// True if a point is such a point.
bool is_origin(const Problem& problem, const Point& point);

/// An eigenvalue of the Hessian there in m or R, and what its eigenvectors are.
struct OriginMode {
  double eigenvalue;
  int multiplicity;
  bool across;       ///< across heads (sum over heads 0), else along 1_H
  Vector direction;  ///< in the space of features; empty: in R
};
std::vector<OriginMode> origin_modes(const Problem& problem, const Point& here);

}  // namespace headflow
