#pragma once

// How far an attention is from the Bayes estimator: the loss above the Bayes risk, as one mean of
// squares. With a_l = (1/H) sum_h sigma_hl and p_l = P(eps = l | X),
//
//   E - E_Bayes = E sum_l (a_l - p_l)^2,
//
// since given the sequence (delta_l,eps - a_l)^2 - (delta_l,eps - p_l)^2 has the mean
// (p_l - a_l)(2 p_l - a_l - p_l). It holds for every function a of the sequence: R xi is one, and
// says nothing of eps. Where the two are close, E and E_Bayes are nearly equal and their errors add
// up, while here every term is small.
//
// Method: randomised quasi-Monte Carlo. A point is (theta's normals, chi* of the L tokens without
// theta, xi of the L tokens) by scrambled Sobol' coordinates, in this order; those beyond the 3667
// of the table are pseudo-random, independent in every randomisation. Every point uses all
// components of the prior, up to 64, each with its weight and on relevant tokens in turn; of more
// components a coordinate chooses one.
//
// Cost: a point costs one evaluation of the activation and L exponentials for each component of
// the prior, and an exponential for each token and component: 1.6 microseconds at L = 5, F = H = 4
// and four atoms, on one core.
//
// Error: standard error over the randomisations, plus that of rounding, 1e-14 in every a_l - p_l at
// scores of up to some tens. Where few points carry the sum (`effective_points`), what is rarer
// than they are is in neither number.

#include <cstdint>

#include "core/context.h"
#include "core/error_kind.h"
#include "expectation/engine.h"
#include "model/problem.h"

namespace headflow {

struct ExcessRisk {
  double risk = 0;  ///< E - E_Bayes, at least 0
  double error = 0;
  ErrorKind error_kind = ErrorKind::randomisations;
  std::int64_t points = 0;      ///< of all randomisations
  double effective_points = 0;  ///< (sum f)^2 / sum f^2 over the points' f: how many carry the sum

  /// True if so few points carry the sum, beyond rounding, that the error is a guess.
  bool carried_by_few() const { return effective_points < 100 && risk > 1e-26; }
};

/// The excess risk at a point in the problem's frame. Of the options it takes samples (0: 100,000;
/// rounded up to a power of two in each randomisation), randomisations, seed and memory. Its random
/// numbers are those of no engine in training. Throws OptionError, Error for a prior that is no
/// mixture of Gaussians and atoms, NotFinite, Interrupted.
ExcessRisk excess_risk(const Problem& problem, const Point& point, const EngineOptions& options,
                       const Context& context = {});

/// The same with the posterior of whoever believes in another prior: E sum_l (a_l - p_l)^2, which
/// is the excess risk only if the belief is true.
ExcessRisk distance_to_posterior(const Problem& problem, const Point& point,
                                 const GaussianMixture& believed, const EngineOptions& options,
                                 const Context& context = {});

}  // namespace headflow
