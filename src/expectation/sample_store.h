#pragma once

// Where the engines with samples keep them: groups of 8, one per vector lane.

#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "core/aligned.h"
#include "core/index.h"
#include "core/workers.h"
#include "expectation/engine.h"

namespace headflow {

/// Room for so many groups of 8 numbers, and for at least one. Throws Error if there is none.
AlignedVector allocate_lanes(std::size_t groups);

/// As many of the context's workers as have room for their scratch space in options.memory, or one;
/// fewer give the same bits. Throws OptionError for run.engine if one takes more than the machine
/// has.
Workers affordable_workers(const EngineOptions& options, const Context& context,
                           double bytes_of_worker);

/// How many groups a worker takes at once, and how many of these are in flight between the
/// scores and the gradient. Powers of two.
struct Blocking {
  std::int64_t block_groups;
  std::int64_t chunk_groups;
};
/// Bytes of the samples and of the scores of a group; chunks are made smaller to have at least
/// `fewest_chunks` of them.
Blocking choose_blocking(std::int64_t groups, std::size_t sample_bytes, std::size_t score_bytes,
                         std::int64_t fewest_chunks);

/// Groups of samples as float or double, all kept if they fit into memory, else made anew for
/// every block. Both give the same bits: a group is a function of its number.
class SampleStore {
 public:
  struct Shape {
    std::int64_t groups = 0;
    std::size_t group_size = 0;     ///< numbers of a group
    std::size_t spare = 0;          ///< numbers that making a group needs besides
    std::int64_t block_groups = 1;  ///< groups asked for at once
    bool single_precision = false;
    std::int64_t memory = 0;  ///< MiB

    /// Bytes that a worker needs, at most.
    double bytes_of_worker() const {
      const double group = static_cast<double>(group_size) * (single_precision ? 4 : 8);
      return 8 * static_cast<double>(group_size + spare) +
             group * static_cast<double>(block_groups);
    }
  };
  /// Writes the numbers of a group; has shape.group_size + shape.spare of room.
  using Make = std::function<void(std::int64_t group, double* values)>;

  SampleStore() = default;
  /// Throws OptionError for program.memory if the samples are to be kept but the machine has less.
  SampleStore(const Shape& shape, const Workers& workers, Make make);

  /// Makes the samples that are kept; to be called again when `make` changes its mind.
  void fill(const Workers& workers);

  /// Groups first, ..., first + count - 1; T must be the precision of the shape.
  template <class T>
  const T* block(std::int64_t first, std::int64_t count, int worker) {
    if (kept_) return buffer<T>(kept_buffers_) + at(first) * shape_.group_size;
    Buffers& own = own_[at(worker)];
    allocate_groups(shape_.block_groups, own);
    for (std::int64_t i = 0; i < count; ++i) {
      make_group(first + i, worker, buffer<T>(own) + at(i) * shape_.group_size);
    }
    return buffer<T>(own);
  }

 private:
  struct Buffers {
    AlignedVector wide;
    AlignedArray<float> narrow;
  };
  template <class T>
  static T* buffer(Buffers& buffers) {
    if constexpr (std::is_same_v<T, float>) {
      return buffers.narrow.data();
    } else {
      return buffers.wide.data();
    }
  }
  void allocate_groups(std::int64_t groups, Buffers& buffers) const;
  double* generated(int worker);
  template <class T>
  void make_group(std::int64_t group, int worker, T* out);

  Shape shape_;
  Make make_;
  bool kept_ = false;
  Buffers kept_buffers_;
  std::vector<Buffers> own_;              // of each worker, if samples are not kept
  std::vector<AlignedVector> generated_;  // of each worker: a group before it is narrowed
};

}  // namespace headflow
