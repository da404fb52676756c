#pragma once

// The Bayes risk: the least loss that any function of the sequence can have. Token eps (uniform) of
// L is relevant, chi*_l ~ N(delta_{l,eps} theta, I_F), theta ~ P_theta. The posterior is
// P(eps = l | chi*) = w(chi*_l) / sum_l' w(chi*_l'), with the evidence w of evidence.h, and
//
//   E_Bayes = E sum_l (delta_{l,eps} - P(eps = l | chi*))^2 = 1 - E P(eps | chi*)
//           = (L - 1) int du e^u h(u)^2 g(u)^{L-2}
//
// for any prior that is a mixture of Gaussians and atoms. The integrand is analytic for |Im u| <
// pi/2, where its integral grows by no more than 1/cos(Im u): the trapezoid rule with step d errs
// by 4 pi e E_Bayes/d exp(-pi^2/d) at most. The parts left out are bounded by (L - 1) e^u at the
// lower end and by h g^{L-1} at the upper.
//
// Cost: milliseconds for components with mutually orthogonal spans, whatever L and F; a grid of
// the span's dimension otherwise, seconds for 3 or 4 dimensions at a tolerance of 1e-9.

#include <cstdint>
#include <string>

#include "core/context.h"
#include "core/error_kind.h"
#include "model/problem.h"

namespace headflow {

enum class BayesMethod {
  automatic,  ///< block by block; sampling only if nothing else is possible
  grid,       ///< one grid for all components together, as a check
  sampling,   ///< h, Q and g from random tokens, for priors that no grid can hold
};

struct BayesOptions {
  double tolerance = 1e-9;  ///< absolute error asked for, from 1e-12 to 0.1
  BayesMethod method = BayesMethod::automatic;
  std::uint64_t seed = 1;  ///< of sampling
};

struct BayesRisk {
  double risk = 0;
  double error = 0;
  ErrorKind error_kind = ErrorKind::refinement;
  std::string method;      ///< how the risk was computed, in words
  std::int64_t nodes = 0;  ///< or tokens, of sampling
  bool tolerance_met = false;
};

/// Throws OptionError for a bad tolerance, Interrupted, Error for a prior whose evidence is not
/// known.
BayesRisk bayes_risk(const Problem& problem, const BayesOptions& options,
                     const Context& context = {});

}  // namespace headflow
