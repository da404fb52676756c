#ifdef HEADFLOW_TBB

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "core/executor.h"

namespace headflow {
namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : arena_(threads > 0 ? threads : static_cast<int>(tbb::task_arena::automatic)) {
    if (threads > 1) {  // the user's word counts, even beyond the number of cores
      beyond_cores_ = std::make_shared<tbb::global_control>(
          tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    }
  }

  int workers() const override { return arena_.max_concurrency(); }

  void run(std::size_t blocks, const Body& body) const override {
    if (workers() == 1 || blocks == 1) return serial_executor()->run(blocks, body);
    arena_.execute([&] {
      tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t block) {
        body(block, tbb::this_task_arena::current_thread_index());
      });
    });
  }

  /// An arena of its own within what there is: nothing else of the process is limited by it.
  std::shared_ptr<const Executor> limited(int most) const override {
    if (most <= 1) return serial_executor();
    return std::make_shared<const TbbExecutor>(std::min(most, workers()), beyond_cores_);
  }

  TbbExecutor(int threads, std::shared_ptr<tbb::global_control> beyond_cores)
      : arena_(threads), beyond_cores_(std::move(beyond_cores)) {}

 private:
  mutable tbb::task_arena arena_;
  std::shared_ptr<tbb::global_control> beyond_cores_;
};

}  // namespace

std::shared_ptr<const Executor> thread_executor(int threads) {
  if (checked_threads(threads) == 1) return serial_executor();
  return std::make_shared<const TbbExecutor>(threads);
}

}  // namespace headflow

#endif  // HEADFLOW_TBB
