#pragma once

// The evidence w(chi) = int exp(theta.chi - |theta|^2/2) P_theta(dtheta) of a token: how much more
// likely it is to be the relevant token than an irrelevant one. The Bayes risk needs three
// functions of it,
//
//   h(u) = E_1 exp(-x),   Q(u) = E_1 (1 - exp(-x))/x,   g(u) = E_0 exp(-x),   x = e^u w(chi),
//
// where E_0 is over irrelevant tokens, chi ~ N(0, I), and E_1 over relevant ones (E_1 . = E_0 w .).
// They are tied by g = 1 - e^u Q and g' = -e^u h; Q keeps the precision of 1 - g where g is near 1.
//
// If w = sum_b w_b and the w_b depend on mutually orthogonal parts of chi, then g = prod_b g_b and
// log g is a sum: blocks are computed one by one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/workers.h"
#include "model/prior.h"

namespace headflow {

/// Where the functions are wanted, and how well.
struct EvidenceRange {
  double digits;  ///< -log of the error: each function to about exp(-digits), absolutely
  double log_L;   ///< errors at u < -log L count e^u L times less
  /// Below it everything is 1 to exp(-digits).
  double smallest_u() const { return -log_L - digits; }
};

struct EvidenceValues {
  double h, Q, g;
};

/// The functions of one block, for w_b = sum of the given components.
class Evidence {
 public:
  virtual ~Evidence() = default;
  virtual EvidenceValues at(double u) const = 0;
  virtual std::int64_t nodes() const = 0;
};

/// Components whose spans (of mean and covariance) are not orthogonal, and how often the same
/// block occurs. The components are in coordinates of the block's own span.
struct EvidenceBlock {
  std::vector<MixtureComponent> components;
  int times = 1;
};
/// The blocks of a mixture; all in one if `whole`.
std::vector<EvidenceBlock> evidence_blocks(const GaussianMixture& prior, bool whole);

/// One Gaussian or atom, of any dimension (evidence_mellin.cc); null if its mean is so large that
/// it would take too many terms.
std::unique_ptr<Evidence> mellin_evidence(const MixtureComponent& component,
                                          const EvidenceRange& range);

/// Any components, by a tensor grid in their span (evidence_grid.cc); nothing if that takes more
/// than `most_work` evaluations of a component. Threads never change a result.
std::unique_ptr<Evidence> grid_evidence(const EvidenceBlock& block, const EvidenceRange& range,
                                        double most_work, const Workers& workers);

/// Tokens number first, first + 1, ... of a seed, of each kind.
struct TokenSample {
  std::uint64_t seed;
  std::int64_t first, count;
};
/// Averages over random tokens (evidence_samples.cc).
std::unique_ptr<Evidence> sampled_evidence(const GaussianMixture& prior, const EvidenceRange& range,
                                           const TokenSample& sample, const Workers& workers);

}  // namespace headflow
