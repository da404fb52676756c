#pragma once

// The distinct ends of training, from many starts.

#include "analysis/fixed_point.h"

namespace headflow {

struct MinimaOptions {
  int starts = 200;
  double noise = 0.01;  ///< of the paper's initial law
  std::uint64_t seed = 1;
};

/// A fixed point, counted once up to permutations of heads and the symmetries of the prior. It may
/// be a saddle (end.index > 0), from a start with a symmetry.
struct Minimum {
  FixedPoint end;
  int starts = 0;        ///< that lead here
  int paper_starts = 0;  ///< of these, from the paper's initial law
};

enum class MinimaOutcome { finished, interrupted };
template <>
inline constexpr Named<MinimaOutcome> kNames<MinimaOutcome>[] = {
    {MinimaOutcome::finished, "finished"}, {MinimaOutcome::interrupted, "interrupted"}};

struct Minima {
  MinimaOutcome outcome = MinimaOutcome::finished;
  std::vector<Minimum> found;  ///< by loss, the best first
  int starts = 0, paper_starts = 0;
  int failed = 0;  ///< starts whose flow did not arrive
};

/// Starts, in turn: the paper's initial law; noise in m of size 0.3, 1 and 2; heads on means of the
/// prior's components with noise. Every start is a pure function of the seed and its number.
Point start_number(const Problem& problem, const MinimaOptions& options, int number,
                   bool& of_the_paper);

/// Two ends are the same if their losses agree within their errors and so do the eigenvalues of
/// their Hessians, which no permutation of heads and no symmetry of the prior changes; or if both
/// lie in a valley (zero modes beyond the symmetries of every problem), where only the loss is one.
bool same_end(const FixedPoint& a, const FixedPoint& b);

/// The observer is told after each start; if it wants to stop, what there is is counted.
Minima find_minima(const Problem& problem, const EngineOptions& engine,
                   const MinimaOptions& options, const Context& context = {});

}  // namespace headflow
