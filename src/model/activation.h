#pragma once

// The activation sigma(chi, parameters; h) of an attention head: everything that the rest of
// headflow knows of it. An activation is one file with a class derived from
//
//   FormulaActivation      (formula_activation.h), which asks for the formula alone and may bring
//                          vectorised functions, as softmax.cc does, or from
//   ElementwiseActivation  (elementwise_activation.h) if a token's weight depends on its score
//   only.
//
// Code elsewhere asks an activation for what it can do and never for its name. CONTRIBUTING.md has
// the steps.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lanes.h"
#include "model/blocks.h"
#include "model/factorisation.h"

namespace headflow {

/// Eight noise draws, each serving `placements` samples: in sample p token p is the
/// relevant one, so that its scores are chi_hp + mu_hp with mu_hp = m_h . theta_p.
/// Scores are in bits, i.e. divided by ln 2: then e^chi is 2^score, whose argument reduction
/// needs no multiplication. Parameters stay in natural units.
/// Exact because tokens are exchangeable; cheap because the noise scores (and, for
/// exponential activations, their exponentials) are shared by all placements.
struct PlacementBatch {
  Sizes sizes;
  int placements = 0;  ///< at most min(tokens, kMaxPlacements)
  const double* parameters = nullptr;
  /// True if max |chi| + max |mu| + largest_shift / ln 2 <= kModerateScore: exponentials, and
  /// products of two sums of them, neither overflow nor vanish.
  bool moderate = false;

  const double* mu = nullptr;       ///< [H][P] in; not read by a fast path if `factor` is given
  const double* factor = nullptr;   ///< [H][P] in: 2^mu where the caller knows it; may be null
  const double* weight = nullptr;   ///< [P] in: of each sample, >= 0; null for 1
  double* chi = nullptr;            ///< [H][L] in: noise scores; out: sum over p of g_hl
  double* g_relevant = nullptr;     ///< [H][P] out: g_hp of sample p, the factor of theta_p
  double* loss = nullptr;           ///< [1] added to
  double* grad = nullptr;           ///< [parameters] added to
  double* second_moment = nullptr;  ///< [H][H] added to: sum_l g_hl g_h'l; null if not wanted
  double* scratch = nullptr;        ///< scratch_groups(sizes) groups
};

inline constexpr int kMaxPlacements = 8;
inline constexpr double kModerateScore = 450.0;  ///< bits

/// The loss near m = 0, R = 0 with equal heads and attention 1/L (theory/origin.h).
struct OriginConstants {
  double c1, c2, c3, c4;
  double g1;  ///< 2 (L-1)/(H L^2) for softmax and B-softmax
};

class Activation {
 public:
  virtual ~Activation() = default;

  virtual std::string_view name() const = 0;     ///< as in configuration files
  virtual std::string_view formula() const = 0;  ///< sigma_hl, for help and docs
  /// What is trained besides m and R. `parameters` below are their numbers, in this order.
  virtual std::vector<BlockInfo> blocks() const { return {}; }

  // ---- Values and derivatives ----

  /// sigma [H][L] of one sample, from its scores chi [H][L]: the definition of the activation,
  /// which everything else is held against. Any finite score is fine: nothing overflows.
  virtual void attention(const Sizes& sizes, const double* chi, const double* parameters,
                         double* sigma) const = 0;

  /// Eight samples at once, one per lane; parameters are shared by the lanes.
  ///   u      [H][L]           in: scores chi; out: whatever `backward` needs there
  ///   state  [state_groups]   out: anything else `backward` needs
  ///   mean   [L]              out: (1/H) sum_h sigma_hl
  virtual void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
                       double* mean) const = 0;
  /// Derivatives given s_l = -d loss / d mean_l.
  ///   u     [H][L]         in: as `forward` left it; out: g_hl = d loss / d chi_hl
  ///   grad  [parameters]   added to
  virtual void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                        const double* state, double* grad) const = 0;
  virtual std::size_t state_groups(const Sizes& sizes) const {
    return static_cast<std::size_t>(sizes.H);
  }

  /// Groups of eight that it would rather have at once: one, unless a call costs much by itself
  /// (a function of Python). Then engines with samples and SGD call `forward_groups` and
  /// `backward_groups`, with so many or fewer.
  virtual std::size_t preferred_groups(const Sizes& /*sizes*/) const { return 1; }
  /// `forward` of `groups` groups, whose arrays lie one after the other.
  virtual void forward_groups(const Sizes& sizes, std::size_t groups, const double* parameters,
                              double* u, double* state, double* mean) const;
  /// `backward` of them; all of them add to the one `grad`, in their order.
  virtual void backward_groups(const Sizes& sizes, std::size_t groups, const double* parameters,
                               const double* s, double* u, const double* state, double* grad) const;

  /// Loss sum_l (delta_lp - mean_l)^2 of each sample and its gradient, summed over placements; by
  /// `forward` and `backward`, unless there is something faster.
  void placements(const PlacementBatch& batch) const;
  /// Groups of 8 doubles of scratch that `placements` may use.
  std::size_t scratch_groups(const Sizes& sizes) const;

  /// The same of several batches, by one call each of `forward_groups` and `backward_groups`; every
  /// batch has chi, mu and g_relevant of its own, sums may be shared. `scratch`, instead of that of
  /// the batches, has together_scratch_groups(sizes, placements of all batches).
  void placements_together(std::span<const PlacementBatch> batches, double* scratch) const;
  std::size_t together_scratch_groups(const Sizes& sizes, std::size_t placements) const;

  // ---- What it can do; the defaults mean that nothing is known ----

  /// How its denominators depend on the tokens: what the factorised engine needs.
  virtual Factorisation factorisation() const { return {}; }
  /// False if the formula has kinks (a ReLU, an absolute value). Its loss is still smooth, but
  /// second derivatives by samples would leave the kinks out: they are refused, and whoever
  /// integrates is told that the gradient over samples jumps.
  virtual bool smooth() const { return true; }
  /// Directions of the parameters along which nothing changes.
  virtual std::vector<Vector> symmetries(const BlockLayout& /*layout*/) const { return {}; }
  /// Coordinates in which a change of the parameters is measured: a parameter that goes to infinity
  /// where nothing depends on it any more is not far.
  virtual Vector travelled(const Blocks& parameters) const { return parameters.values(); }
  /// True if the parameters silence this head.
  virtual bool silent(const Blocks& /*parameters*/, int /*head*/) const { return false; }
  /// Changes what it takes of blocks that are equal for all heads, and no more, to make attention
  /// 1/L at m = R = 0.
  virtual void set_origin(Blocks& /*equal*/) const {}
  /// Closed forms there, if they are known.
  virtual std::optional<OriginConstants> origin_constants(const Blocks& /*equal*/) const {
    return std::nullopt;
  }

  /// True if there is something faster than `forward` and `backward` for a PlacementBatch with
  /// moderate scores and no second moment.
  virtual bool has_fast_placements() const { return false; }
  /// The most that parameters add to a score, for PlacementBatch::moderate.
  virtual double largest_shift(const Blocks& /*parameters*/) const { return 0; }

 protected:
  virtual void fast_placements(const PlacementBatch& /*batch*/) const {}
};

/// Sets blocks to where training starts.
void set_initial(Blocks& blocks);

/// The registry (activation.cc): those of headflow, and those that were added.
std::vector<std::shared_ptr<const Activation>> activations();
/// Makes an activation known by its name. Throws Error if there is one of that name, or if the
/// table of keys was made already.
void register_activation(std::shared_ptr<const Activation> activation);
void close_activations();  ///< for the table of keys
/// Throws OptionError for problem.activation if there is none of that name.
std::shared_ptr<const Activation> find_activation(std::string_view name);

}  // namespace headflow
