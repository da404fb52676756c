#pragma once

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <cstddef>
#include <memory>

namespace headflow {

/// Threads for loops over independent blocks of work. Results must not depend on who
/// runs a block: each block writes to a place of its own, and the caller then sums the
/// places in order. That, and randomness keyed by work item, is what makes results
/// bit-identical for any number of threads.
class Workers {
 public:
  /// threads = 0 takes every core.
  explicit Workers(int threads = 0)
      : arena_(std::make_unique<tbb::task_arena>(
            threads > 0 ? threads : static_cast<int>(tbb::task_arena::automatic))) {
    if (threads > 1) {  // the user's word counts, even beyond the number of cores
      limit_ = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                     static_cast<std::size_t>(threads));
    }
  }

  /// At most this many blocks run at once; size per-worker scratch with it.
  int count() const { return arena_->max_concurrency(); }

  /// Calls body(block, worker) for block < blocks, with 0 <= worker < count().
  template <class Body>
  void for_each_block(std::size_t blocks, const Body& body) const {
    if (count() == 1 || blocks == 1) {
      for (std::size_t block = 0; block < blocks; ++block) body(block, 0);
      return;
    }
    arena_->execute([&] {
      tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t block) {
        body(block, tbb::this_task_arena::current_thread_index());
      });
    });
  }

 private:
  std::unique_ptr<tbb::global_control> limit_;
  std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace headflow
