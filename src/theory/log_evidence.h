#pragma once

// The evidence w(chi) = integral of exp(theta . chi - |theta|^2 / 2) P_theta(dtheta) that a token
// is the relevant one, for a mixture of Gaussians and atoms:
//
//   log w = log sum_k exp( c_k + b_k . chi + |A_k chi|^2 / 2 ).
//
// The posterior of the relevant token is proportional to it (proposition IV.1).

#include <cstddef>
#include <vector>

#include "model/prior.h"

namespace headflow {

class LogEvidence {
 public:
  explicit LogEvidence(const GaussianMixture& prior);

  double operator()(const Vector& chi) const;

  /// The same for tokens of eight samples, one a lane: chi [tokens][F], scratch
  /// [scratch_groups(tokens)], out [tokens]. No allocation.
  void lanewise(const double* chi, int tokens, double* scratch, double* out) const;
  std::size_t scratch_groups(int tokens) const;

 private:
  struct Term {
    Matrix rows;  ///< b_k, then those of A_k: all that is multiplied with chi
    double constant = 0;
  };
  std::vector<Term> terms_;
  Eigen::Index most_rows_ = 1;
};

}  // namespace headflow
