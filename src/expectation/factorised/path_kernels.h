#pragma once

// The inner loops of path_sums.h, on groups of 8 nodes, one in each lane. Arrays written [a][b]
// hold a*b groups. Where a tangent may go with a quantity its pointer may be null.

#include <cstddef>
#include <cstdint>

#include "core/lanes.h"

namespace headflow::factorised {

inline constexpr int kPathChunk = 16;  ///< groups at most in a PathScores: they stay in L1
inline constexpr int kPathCopies = 4;  ///< of a histogram

/// Scores of a token are chi + shift at a node and -chi + shift at its mirror image; chi is
/// [heads][groups], the shifts (biases and means) are one number a head.
struct PathScores {
  int heads, groups;
  double sign;  ///< of chi
  const double *chi, *tangent;
  const double* power;  ///< e^(sign chi); null if that may overflow: then by differences of logs
  const double *shift, *shift_tangent;
  const double* factor;  ///< e^shift, with `power`
};

/// e^chi and e^-chi, of `groups` groups.
void path_powers(int groups, const double* chi, double* rise, double* fall);

/// t = log sum_h e^(sign chi_h + shift_h) of every node.
void path_weights(const PathScores& scores, double* t, double* t_tangent);

/// Spreads numbers t over the cells of a histogram (weight_laws.h) that begins with cell `first`:
/// of kPathCopies of it, `copy` apart, which are to be added up.
void path_spread(int groups, const double* t, const double* t_tangent, std::int64_t first,
                 std::ptrdiff_t copy, double* mass, double* mass_tangent);

/// bar = scale * slope(t), by coefficients of polynomials on cells from `first` on.
void path_slopes(int groups, const double* t, const double* t_tangent, std::int64_t first,
                 const double* coefficient, const double* coefficient_tangent, double scale,
                 double* bar, double* bar_tangent);

/// With p_h = e^(sign chi_h + shift_h - t) adds sign * bar p_h to g_h, [heads][groups], and bar p_h
/// to sum, [heads], over nodes. With tangents it is those of bar p_h.
void path_shares(const PathScores& scores, const double* t, const double* t_tangent,
                 const double* bar, const double* bar_tangent, double* g, double* sum);

}  // namespace headflow::factorised
