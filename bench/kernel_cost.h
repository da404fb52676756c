#pragma once

// The arithmetic and the memory traffic of one Monte-Carlo evaluation, counted by hand from
// expectation/monte_carlo.cc and model/activations/. A fused multiply-add is 2 operations;
// mul, add, sub, div and max are 1 each. Not counted: integer operations, comparisons, loads
// and stores, and whatever the kernel does without need (e^b of every group). So a fraction of the
// peak is never flattered.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cases.h"
#include "core/random.h"
#include "expectation/engine.h"
#include "model/activation.h"

namespace headflow::bench {

struct KernelCost {
  double flops = 0;
  double bytes = 0;  ///< samples read once; scores and gradients never leave the cache
};

/// simd::Exp2: three additions to reduce x, then Horner with 10 fused steps.
inline constexpr double kExp2 = 3 + 2 * 10;

/// Softmax and softmax-1, a draw with its P placements: PerHead::Placements.
inline double per_head_flops(double H, double L, double P, bool sink) {
  const double exponentials = L * (kExp2 + 1) + (L - P);      // e_hl, sums from both ends
  const double normalise = P * 7;                             // n, Z (2), 1/Z, share, own, after
  const double mean = 2 * L * P;                              // e_hl / Z_hp summed over heads
  const double inner = 2 * (L * P - P);                       // s is zero at l = p
  const double shift = P * (7 + 3);                           // d, shift, g of the relevant; others
  const double gradient = 2 * (L * P - P) + 2 * P + (L - P);  // g summed over placements
  const double bias = sink ? 2 : 0;
  const double residual = (sink ? 7 : 5) * L * P;  // w, s, loss (and v): once for all heads
  return H * (exponentials + normalise + mean + inner + shift + gradient + bias) + residual;
}

/// B-softmax: only sums over heads enter the loss.
inline double b_softmax_flops(double H, double L, double P) {
  const double exponentials = H * L * (kExp2 + 2)           // + b, c_l
                              + 3 * L + 3 * (L - P);        // sums of c and c^2 from both ends
  const double placement = H * 3                            // n_hp, its sum, g of the relevant
                           + 25;                            // Z, 1/Z, loss, inner, the factors of g
  const double gradient = P * 6 + (L - P) * 2               // sums of the factors without l
                          + H * (3 * P + 2 * (L - P) + 1);  // g, its sum for b
  return exponentials + P * placement + gradient;
}

inline KernelCost kernel_cost(const Case& c, std::string_view activation,
                              const EngineOptions& options) {
  const double H = c.H, F = c.F, L = c.L, K = F + H;
  const double P = std::min(c.L, kMaxPlacements);
  // The scores W x of L tokens, and the outer products of the gradient with x and theta. The
  // cases have a discrete prior: e^(m theta) is looked up.
  const double products = 2 * (2 * H * K * L + H * F * P);
  const double activation_flops = activation == "b-softmax"
                                      ? b_softmax_flops(H, L, P)
                                      : per_head_flops(H, L, P, activation == "softmax-1");
  const double draws = std::ceil(static_cast<double>(options.samples) / (P * kLanes)) * kLanes;
  const double number = options.precision == Precision::float32 ? 4 : 8;
  return {draws * (products + activation_flops), draws * number * (L * K + P)};
}

}  // namespace headflow::bench
