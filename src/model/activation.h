#pragma once

// The activation sigma(chi, b, v; h) of an attention head, and its derivative.
//
// All functions work on kLanes = 8 samples at once, one per vector lane: an array
// written [H][L] holds H*L groups of 8 doubles, aligned to 64 bytes. b and v are shared by
// the lanes. Implementations are vectorised with run-time dispatch; see
// activations/softmax.cc for the pattern and CONTRIBUTING.md for the steps.

#include <span>
#include <string_view>

#include "core/random.h"

namespace headflow {

/// How an activation's denominators depend on the tokens; what the factorised engine needs.
enum class Factorisation {
  none,             ///< not a sum of exponentials over tokens: sampled engines only
  heads,            ///< each head is normalised by its own sum: softmax
  heads_with_sink,  ///< that sum plus e^b, output times v: softmax-1
  joint,            ///< all heads share one sum of e^(chi + b): B-softmax
};

struct ActivationInfo {
  std::string_view name;     ///< as in configuration files
  std::string_view formula;  ///< sigma_hl, for help and docs
  bool trains_b;
  bool trains_v;
  Factorisation factorisation = Factorisation::none;
};

/// Eight noise draws, each serving `placements` samples: in sample p token p is the
/// relevant one, so that its scores are chi_hp + mu_hp with mu_hp = m_h . theta_p.
/// Scores are in bits, i.e. divided by ln 2: then e^chi is 2^score, whose argument reduction
/// needs no multiplication. b stays in natural units.
/// Exact because tokens are exchangeable; cheap because the noise scores (and, for
/// exponential activations, their exponentials) are shared by all placements.
struct PlacementBatch {
  int heads = 0;
  int tokens = 0;
  int placements = 0;  ///< at most min(tokens, kMaxPlacements)
  const double* b = nullptr;
  double v = 1.0;
  /// True if max |chi| + max |mu| + max |b| / ln 2 <= kModerateScore: exponentials, and
  /// products of two sums of them, neither overflow nor vanish.
  bool moderate = false;

  const double* mu = nullptr;       ///< [H][P] in; may be null if moderate and `factor` is given
  const double* factor = nullptr;   ///< [H][P] in: 2^mu where the caller knows it; may be null
  const double* weight = nullptr;   ///< [P] in: of each sample, >= 0; null for 1
  double* chi = nullptr;            ///< [H][L] in: noise scores; out: sum over p of g_hl
  double* g_relevant = nullptr;     ///< [H][P] out: g_hp of sample p, the factor of theta_p
  double* loss = nullptr;           ///< [1] added to
  double* grad_b = nullptr;         ///< [H] added to
  double* grad_v = nullptr;         ///< [1] added to
  double* second_moment = nullptr;  ///< [H][H] added to: sum_l g_hl g_h'l; null if not wanted
  double* scratch = nullptr;        ///< scratch_size(heads, tokens) groups
};

inline constexpr int kMaxPlacements = 8;
inline constexpr double kModerateScore = 450.0;  ///< bits

/// What an activation computes, compiled for one instruction set.
struct ActivationKernels {
  /// Weights and mean output of eight samples.
  ///   u      [H][L]  in: scores chi; out: normalised weights (what backward needs)
  ///   state  [H]     out: anything else backward needs
  ///   mean   [L]     out: (1/H) sum_h sigma_hl
  /// Any finite score is fine: nothing overflows.
  void (*forward)(int heads, int tokens, const double* b, double v, double* u, double* state,
                  double* mean);

  /// Derivatives given s_l = -d loss / d mean_l.
  ///   u       [H][L]  in: weights; out: g_hl = d loss / d chi_hl
  ///   grad_b  [H], grad_v [1]  added to
  void (*backward)(int heads, int tokens, double v, const double* s, double* u, const double* state,
                   double* grad_b, double* grad_v);

  /// Optional (null: forward and backward for each placement): loss and gradient of a
  /// PlacementBatch with moderate scores and no second moment, faster.
  void (*placements)(const PlacementBatch& batch) = nullptr;
};

class Activation {
 public:
  /// `kernels` returns the functions for the instruction set of this machine.
  Activation(const ActivationInfo& info, ActivationKernels (*kernels)())
      : info_(info), kernels_(kernels) {}

  const ActivationInfo& info() const { return info_; }
  ActivationKernels kernels() const { return kernels_(); }

  /// Loss sum_l (delta_lp - mean_l)^2 of each sample and its gradient, summed over placements.
  void placements(const PlacementBatch& batch) const;

  /// Groups of 8 doubles of scratch that `placements` may use.
  static std::size_t scratch_size(int heads, int tokens) {
    const auto H = static_cast<std::size_t>(heads), L = static_cast<std::size_t>(tokens);
    return 2 * H * L + 2 * H * kMaxPlacements + L * kMaxPlacements + 4 * L + 4 * H + 32;
  }

 private:
  ActivationInfo info_;
  ActivationKernels (*kernels_)();
};

/// The registry (activation.cc).
std::span<const Activation* const> activations();
/// Throws OptionError for problem.activation if there is none of that name.
const Activation& find_activation(std::string_view name);

}  // namespace headflow
