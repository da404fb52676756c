#pragma once

#include <vector>

#include "core/parallel.h"
#include "expectation/engine.h"
#include "expectation/sample_store.h"
#include "expectation/sobol.h"

namespace headflow {

/// Randomised quasi-Monte Carlo: scrambled Sobol' points instead of random ones.
///
/// A point is (theta's numbers, noise of the L tokens), a token at a time, its features first;
/// through the normal quantile it is a draw of MonteCarlo. What is random there is summed exactly
/// where it can be: components of a mixture prior (up to 64) are all used in every point, each
/// with its weight, on relevant tokens of their own; the position of the relevant token is
/// averaged over min(L, 8) tokens. Other priors are sampled, with theta's choice stratified over
/// the placements.
///
/// `samples` counts points, those of all the randomisations. Each randomisation has the same
/// number of points, a power of two and at least 8, so that samples() may be more than was asked
/// for. Coordinates beyond the 3667 of the table, those of the last tokens, are pseudo-random
/// normals, independent in every randomisation.
///
/// Cost of a point: as a draw (8 samples) of MonteCarlo, for up to 8 components.
/// Error: standard error over the randomisations; it has their number - 1 degrees of freedom. It
/// falls as about 1/N in a few dimensions with smooth scores, and never slower than N^(-1/2).
/// Results do not depend on the number of threads; points are kept up to options.memory.
class Qmc final : public Engine {
 public:
  Qmc(const Problem& problem, const EngineOptions& options);

  std::string_view name() const override { return "qmc"; }
  ErrorKind error_kind() const override { return ErrorKind::randomisations; }
  std::int64_t samples() const override { return randomisations_ * points_; }
  void evaluate(const Point& point, const Request& request, Evaluation& out) override;
  void refresh(std::uint32_t draw) override;

 private:
  /// Scratch of one worker; sized once.
  struct Scratch {
    LaneBuffer<double> chi, mu, g_relevant, work, sums;
  };

  void set_roles();
  void generate(std::int64_t group, double* values) const;
  void set_atoms();
  template <class T>
  void run_block(std::size_t block, int worker, const Point& point, const Request& request);

  int randomisations_;
  int log2_points_;
  std::int64_t points_;             // of a randomisation
  std::int64_t groups_;             // of 8 points, of a randomisation
  const GaussianMixture* mixture_;  // the prior if its components are summed, else null
  bool atoms_;                      // ... and none of them has a covariance
  int placements_;                  // P, of one call of the activation
  int calls_;                       // C: component (c P + p) mod K is at token p of call c
  std::int64_t block_groups_, chunk_groups_;
  int signal_dimensions_, sobol_noise_;  // coordinates of theta; of the noise, in the sequence
  std::size_t group_size_;  // numbers of one group: noise [L][F+H], then theta [C P][F] or none
  bool single_precision_;
  std::uint64_t seed_;
  std::uint32_t draw_ = 0;
  Vector theta_bound_;

  Workers workers_;
  ScrambledSobol sobol_;
  SampleStore store_;
  std::vector<Scratch> scratch_;
  LaneBuffer<double> role_weight_;                         // [C][P]
  LaneBuffer<double> atom_theta_, atom_mu_, atom_factor_;  // [C][P][F], [C][H][P] twice
  Matrix weights_;                                         // [m R] in bits
  std::vector<double> partial_;                            // sums of each block
  bool always_moderate_ = false;
};

}  // namespace headflow
