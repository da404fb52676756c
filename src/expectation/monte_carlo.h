#pragma once

#include <vector>

#include "core/workers.h"
#include "expectation/engine.h"
#include "expectation/sample_store.h"

namespace headflow {

/// Monte Carlo with a fixed set of samples and analytic gradients.
///
/// A sample is (noise of L tokens, relevant position, theta). Tokens are exchangeable, so one
/// noise draw serves P = min(L, 8) samples: in the p-th, token p is relevant, with a theta of
/// its own. Each sample has the exact law; the P samples of a draw are correlated, so all
/// errors are taken over draws (batches of them), never over samples. For N samples this
/// needs N/P instead of N noise draws, score products and sets of exponentials.
///
/// Cost per sample, in fused multiply-adds: 2 H (F+H) L/P + O(H L). Error: standard error,
/// falling as N^(-1/2); it needs at least two draws. Results do not depend on the number of
/// threads. Samples are kept up to options.memory and made anew beyond it: they are a function
/// of (seed, draw, index), so both give the same bits.
class MonteCarlo final : public Engine {
 public:
  MonteCarlo(const Problem& problem, const EngineOptions& options, const Context& context = {});

  std::string_view name() const override { return "mc"; }
  ErrorKind error_kind() const override { return ErrorKind::standard_error; }
  std::int64_t samples() const override { return samples_; }
  void evaluate(const Point& point, const Request& request, Evaluation& out) override;
  void refresh(std::uint32_t draw) override;

  /// One sample, for checks: x is L x (F+H), the rows (chi*_l, xi_l), theta included.
  struct Sample {
    Matrix x;
    int relevant;
  };
  Sample sample(std::int64_t index) const;

 private:
  /// Scratch of one worker; sized once.
  struct Scratch {
    AlignedVector chi, mu, theta, g_relevant, work, weight, inverse_size;
    AlignedVector batch, total, squares;
    std::vector<PlacementBatch> batches;  // of a chunk, if they are computed together
  };

  void generate(std::int64_t group, double* values) const;
  std::size_t work_groups() const;
  std::size_t spare() const;  // numbers that `generate` needs besides those of a group
  template <class T>
  void set_scores(const T* x, int n, bool look_up, Scratch& s, PlacementBatch& work) const;
  const double* weigh(std::int64_t first, int n, Scratch& s, double* size) const;
  template <class T>
  void add_gradient(const T* chunk, int groups, const Scratch& s, double* gradient) const;
  template <class T>
  void run_block(std::size_t block, int worker, const Point& point, const Request& request);

  std::int64_t samples_;
  int placements_;       // P
  std::int64_t draws_;   // ceil(samples / P)
  std::int64_t groups_;  // of 8 draws
  std::int64_t block_groups_, chunk_groups_;
  std::size_t group_size_;  // numbers of one group: noise [L][F+H], theta [P][F] or atom [P]
  bool together_ = false;   // the activation wants a chunk at once
  bool single_precision_;
  std::uint64_t seed_;
  std::uint32_t draw_ = 0;
  Vector theta_bound_;

  Workers workers_;
  std::vector<Scratch> scratch_;
  SampleStore store_;
  /// The prior if it is a few atoms, else null: then samples hold the number of the atom, and
  /// theta and e^mu are looked up.
  const GaussianMixture* atoms_ = nullptr;
  Matrix atom_theta_;                   // F x 8
  Matrix atom_factor_;                  // H x 8: 2^mu of head and atom
  Matrix weights_;                      // [m R], rows first
  std::vector<double> partial_;         // per block of a round: sums, then sums of squares
  std::size_t blocks_ = 0, round_ = 1;  // all blocks; those whose sums are kept at once
  int entries_ = 0;                     // numbers accumulated: loss, m, R, b, v, second moment
  bool a_priori_moderate_ = false;
};

}  // namespace headflow
