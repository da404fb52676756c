#pragma once

// Who does the work. Loops over independent blocks go to an Executor, which is handed in: one
// thread, many, or (later) many processes. Nothing else knows of them.

#include <cstddef>
#include <functional>
#include <memory>

namespace headflow {

class Executor {
 public:
  using Body = std::function<void(std::size_t block, int worker)>;

  virtual ~Executor() = default;
  /// At most so many blocks run at once; size per-worker scratch with it.
  virtual int workers() const = 0;
  /// Calls body(block, worker) for all blocks < `blocks`, with 0 <= worker < workers(), and returns
  /// when all are done. What a body throws is thrown here.
  virtual void run(std::size_t blocks, const Body& body) const = 0;
  /// One with so many workers at most.
  virtual std::shared_ptr<const Executor> limited(int most) const = 0;
};

/// Blocks one after the other, in the calling thread.
std::shared_ptr<const Executor> serial_executor();

/// Threads of oneTBB, if the library was built with it; else serial_executor(). 0 takes every core;
/// more than there are cores are the caller's word. Throws OptionError for program.threads if the
/// number is below 0 or beyond kMostThreads.
std::shared_ptr<const Executor> thread_executor(int threads);
inline constexpr int kMostThreads = 1024;
int checked_threads(int threads);

}  // namespace headflow
