#pragma once

// What the engines that sum over samples share besides the samples: which numbers are
// summed and in which order, the scores' weights, and the rules of their options.

#include "expectation/engine.h"

namespace headflow {

inline constexpr std::size_t kLongGroup = 1 << 20;     ///< numbers; such a group takes milliseconds
inline constexpr std::size_t kRoundNumbers = 1 << 22;  ///< sums of blocks that are kept at once

/// Order of the accumulated numbers: the loss, then [m R] by rows, the activation's parameters, and
/// the second moment.
struct SumLayout {
  explicit SumLayout(const Problem& problem)
      : H(problem.H()), F(problem.F()), count(static_cast<int>(problem.layout()->size())) {}
  int H, F, count;
  int weights() const { return 1; }
  int parameters() const { return weights() + H * (F + H); }
  int second_moment() const { return parameters() + count; }
  int size() const { return second_moment() + H * H; }
};

/// The part of `values`, in that order, that is a gradient or an error of one.
Point point_of_sums(const Problem& problem, const Vector& values);
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
bool always_moderate(const Problem& problem, const Matrix& weights, const Point& point,
                     const Vector& theta_bound);

/// True if these scores are: chi_count groups of chi, mu_count groups of mu, parameters that add
/// `shift` at most (Activation::largest_shift).
bool moderate(const double* chi, int chi_count, const double* mu, int mu_count, double shift);

/// A batch for this problem and point that adds to `sums`, groups in the order of the layout.
PlacementBatch batch_into(const Problem& problem, const Point& point, bool second_moment,
                          double* sums);

}  // namespace headflow
