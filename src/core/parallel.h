#pragma once

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "core/error.h"

namespace headflow {

/// Asked now and then by long computations, from any thread; false: stop, throw Interrupted. An
/// empty one never stops anything.
using GoOn = std::function<bool()>;

inline void stop_unless(const GoOn& go_on) {
  if (go_on && !go_on()) throw Interrupted();
}

/// The most threads that may be asked for: each has its own scratch space.
inline constexpr int kMostThreads = 1024;

inline int checked_threads(int threads) {
  if (threads < 0 || threads > kMostThreads) {
    throw OptionError("program.threads", fmt::format("{}", threads),
                      fmt::format("must be from 0 (all cores) to {}", kMostThreads));
  }
  return threads;
}

/// Threads for loops over independent blocks of work. Results must not depend on who
/// runs a block: each block writes to a place of its own, and the caller then sums the
/// places in order. That, and randomness keyed by work item, is what makes results
/// bit-identical for any number of threads.
class Workers {
 public:
  /// threads = 0 takes every core. Throws OptionError for a number below 0 or beyond kMostThreads.
  explicit Workers(int threads = 0, GoOn go_on = {})
      : go_on_(std::move(go_on)),
        arena_(std::make_unique<tbb::task_arena>(
            checked_threads(threads) > 0 ? threads
                                         : static_cast<int>(tbb::task_arena::automatic))) {
    if (threads > 1) {  // the user's word counts, even beyond the number of cores
      limit_ = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                     static_cast<std::size_t>(threads));
    }
  }

  /// At most this many blocks run at once; size per-worker scratch with it.
  int count() const { return arena_->max_concurrency(); }

  /// Throws Interrupted if go_on says no; for loops that are not over blocks.
  void check_go_on() const { stop_unless(go_on_); }

  /// Calls body(block, worker) for block < blocks, with 0 <= worker < count(). Asks go_on before
  /// every block: blocks should take well under a second.
  template <class Body>
  void for_each_block(std::size_t blocks, const Body& body) const {
    if (count() == 1 || blocks == 1) {
      for (std::size_t block = 0; block < blocks; ++block) {
        check_go_on();
        body(block, 0);
      }
      return;
    }
    arena_->execute([&] {
      tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t block) {
        check_go_on();
        body(block, tbb::this_task_arena::current_thread_index());
      });
    });
  }

 private:
  GoOn go_on_;
  std::unique_ptr<tbb::global_control> limit_;
  std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace headflow
