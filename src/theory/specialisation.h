#pragma once

// How a feature that is learnt bends the loss for one that is not yet (lemmas III.2 and A.6 of the
// paper, which gives signs only). Softmax, R = 0, E theta = 0, independent theta_f. With u = m_:i
// of the learnt feature and a = m_:f of the new one, both orthogonal to 1_H,
//   d^2 E / da da = [that at m = 0] + c1 |u|^2 I + c2 Diag(u^2) + c3 u u^T + O(u^4).
// docs/theory.md derives the constants.

namespace headflow {

struct SpecialisationConstants {
  double c1;  ///< (L-1)(L-2)^2 V W / (H^2 L^5), never negative
  double c2;  ///< of either sign
  double c3;  ///< positive for L >= 3, zero for L = 2
};

/// V is the variance of the new feature, W that of the learnt one.
SpecialisationConstants specialisation_constants(int L, int H, double V, double W);

/// The least loss that softmax can have, whatever its heads, if theta and -theta are equally
/// likely: L / (4 (L-1)). Negating theta and all noise negates every score, and the two attentions
/// on the relevant token then sum to 1 at most; so their losses average to this at least.
double softmax_bound(int L);

}  // namespace headflow
