#pragma once

#include <vector>

#include "core/workers.h"
#include "expectation/engine.h"
#include "expectation/sample_store.h"
#include "expectation/sobol.h"

namespace headflow {

/// Randomised quasi-Monte Carlo: scrambled Sobol' points instead of random ones.
///
/// A point is (theta's numbers, noise of the L tokens), a token at a time, its features first;
/// through the normal quantile it is a draw of MonteCarlo. What is random there is summed where
/// it can be: every point uses all components of a mixture prior (up to 64), each with its weight
/// and on relevant tokens of its own; a single component is on min(L, 4) tokens in turn. Other
/// priors are sampled, theta's choice stratified over these tokens.
///
/// `samples` counts points, those of all the randomisations. Each randomisation has the same
/// number of points, a power of two and at least 8, so that samples() may be more than was asked
/// for. Coordinates beyond the 3667 of the table, those of the last tokens, are pseudo-random
/// normals, independent in every randomisation.
///
/// Cost of a point: at most that of a draw (8 samples) of MonteCarlo, for up to 8 components.
/// Error: standard error over the randomisations, with one degree of freedom less than there are
/// of them. It falls as N^(-1) in a few dimensions and with moderate scores (tested: L = 2, H = F
/// = 1), slower in more (measured: N^(-0.7) for L = 10, H = F = 2), and like Monte Carlo's in very
/// many. Results do not depend on the number of threads; points are kept up to options.memory and
/// made anew beyond it, with the same bits.
class Qmc final : public Engine {
 public:
  Qmc(const Problem& problem, const EngineOptions& options, const Context& context = {});

  std::string_view name() const override { return "qmc"; }
  ErrorKind error_kind() const override { return ErrorKind::randomisations; }
  std::int64_t samples() const override { return randomisations_ * points_; }
  void evaluate(const Point& point, const Request& request, Evaluation& out) override;
  void refresh(std::uint32_t draw) override;

 private:
  /// Scratch of one worker; sized once.
  struct Scratch {
    AlignedVector chi, mu, g_relevant, work, sums;
    std::vector<PlacementBatch> batches;  // of a chunk, if they are computed together
  };

  void set_roles();
  void set_signal(const double* uniform, double* theta) const;
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
  bool together_ = false;   // the activation wants a chunk at once
  bool single_precision_;
  std::uint64_t seed_;
  std::uint32_t draw_ = 0;
  Vector theta_bound_;

  Workers workers_;
  ScrambledSobol sobol_;
  SampleStore store_;
  std::vector<Scratch> scratch_;
  AlignedVector role_weight_;                         // [C][P]
  AlignedVector atom_theta_, atom_mu_, atom_factor_;  // [C][P][F], [C][H][P] twice
  Matrix weights_;                                    // [m R] in bits
  std::size_t round_ = 1;                             // blocks whose sums are kept at once
  std::vector<double> partial_;                       // sums of each block of a round
  bool always_moderate_ = false;
};

}  // namespace headflow
