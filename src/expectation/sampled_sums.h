#pragma once

// What the engines that sum over samples share besides the samples: which numbers are
// summed and in which order, the scores' weights, and the rules of their options.

#include "expectation/engine.h"

namespace headflow {

inline constexpr std::size_t kLongGroup = 1 << 20;     ///< numbers; such a group takes milliseconds
inline constexpr std::size_t kRoundNumbers = 1 << 22;  ///< sums of blocks that are kept at once

/// Order of the accumulated numbers: the loss, then [m R] by rows, b, v, and the second moment.
struct SumLayout {
  int H, F;
  int weights() const { return 1; }
  int b() const { return weights() + H * (F + H); }
  int v() const { return b() + H; }
  int second_moment() const { return v() + 1; }
  int size() const { return second_moment() + H * H; }
};

/// The part of `values`, in that order, that is a gradient or an error of one.
void unpack_sums(const SumLayout& layout, const Vector& values, Point& out);
/// The part that is the second moment.
Matrix second_moment_of_sums(const SumLayout& layout, const Vector& values);

/// Options that are the same for all of them; each throws OptionError.
std::int64_t checked_samples(const EngineOptions& options);  ///< kDefaultSamples for 0
void check_memory(const EngineOptions& options);
int checked_randomisations(const EngineOptions& options);  ///< of qmc

/// [m R], H x (F+H), for scores in bits: see PlacementBatch.
void set_weights_in_bits(const Point& point, Matrix& weights);

/// True if the scores are moderate (see PlacementBatch) for all normals up to kLargestNormal.
/// `theta_bound` is Prior::largest of the same.
bool always_moderate(const Matrix& weights, const Point& point, const Vector& theta_bound);

/// True if these scores are: chi_count groups of chi, mu_count groups of mu.
bool moderate(const double* chi, int chi_count, const double* mu, int mu_count, const Point& point);

/// A batch for this problem and point that adds to `sums`, groups in the order of the layout.
PlacementBatch batch_into(const Problem& problem, const Point& point, bool second_moment,
                          double* sums);

}  // namespace headflow
