#pragma once

// Counter-based randomness. Every number is a pure function of
//   (seed, purpose, draw, item, position),
// never of a thread or of what was drawn before: results are the same bits for any
// number of threads, processes and resumes. The generator is Philox4x32-10
// (Salmon et al., SC 2011): key = seed, counter = (position, item, draw | purpose).

#include <cstdint>

#include "core/lanes.h"

namespace headflow {

/// What a stream is for. Streams of different purposes never share a number.
enum class Purpose : std::uint32_t {
  noise = 1,               ///< the Gaussian noise of the tokens of a sample
  signal = 2,              ///< theta of a sample: its normals
  signal_choice = 4,       ///< theta of a sample: its uniform
  initial_point = 3,       ///< the starting point of a flow
  scrambling = 5,          ///< random digits of a scrambled Sobol' sequence
  padding = 6,             ///< coordinates beyond the last one of that sequence
  sgd_initial = 7,         ///< the starting point of SGD
  sgd_noise = 8,           ///< the noise of a sample of SGD
  sgd_signal = 9,          ///< theta of a sample of SGD: its normals
  sgd_signal_choice = 10,  ///< theta of a sample of SGD: its uniform
  sgd_chunk = 11,          ///< what samples of reduced SGD are where no vector of the state reaches
  sgd_chunk_choice = 12,   ///< acceptance of chi numbers there
  sgd_retry = 13,          ///< chi numbers whose first proposal was rejected
  sgd_merge = 14,          ///< sums of different threads or lanes: how they lie to each other
  sgd_merge_choice = 15,   ///< acceptance of chi numbers there
  minima = 16,             ///< starts of a search for minima
  verify = 17,             ///< sequences that a statement is checked with
  attention = 18,          ///< sequences whose attention is shown
  test = 255
};

/// Identifies a stream up to the item (a sample, a replica, ...).
struct StreamKey {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::test;
  std::uint32_t draw = 0;  ///< which redraw of the same thing; below 2^24
};

/// A sequential stream for code that is not hot: the numbers of one item.
class RandomStream {
 public:
  RandomStream(const StreamKey& key, std::uint64_t item) : key_(key), item_(item) {}

  std::uint64_t bits();
  double uniform();  ///< in (0, 1), never 0 or 1
  double normal();

 private:
  StreamKey key_;
  std::uint64_t item_;
  std::uint32_t position_ = 0;
  int left_ = 0;
  std::uint64_t buffer_[2] = {};
  bool has_normal_ = false;
  double next_normal_ = 0;
};

/// Fills out[j * 8 + i], j < count, i < 8, with N(0,1) for the items 8*group + i.
/// Item by item these are independent streams, whatever the vector width.
/// |z| < 7.54: two numbers take 64 bits, 40 for their radius and 24 for their angle (Box-Muller;
/// random.cc says how well their moments are those of N(0,1)). About 1 ns a number with AVX-512.
void fill_normals(const StreamKey& key, std::uint64_t group, int count, double* out);

/// The same with uniforms in (0, 1).
void fill_uniforms(const StreamKey& key, std::uint64_t group, int count, double* out);

/// Upper bound of what fill_normals can return.
inline constexpr double kLargestNormal = 7.54;

}  // namespace headflow
