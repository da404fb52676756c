#include "core/executor.h"

#include "core/error.h"

namespace headflow {
namespace {

class Serial final : public Executor {
 public:
  int workers() const override { return 1; }
  void run(std::size_t blocks, const Body& body) const override {
    for (std::size_t block = 0; block < blocks; ++block) body(block, 0);
  }
  std::shared_ptr<const Executor> limited(int /*most*/) const override { return serial_executor(); }
};

}  // namespace

std::shared_ptr<const Executor> serial_executor() {
  static const auto one = std::make_shared<const Serial>();
  return one;
}

int checked_threads(int threads) {
  if (threads < 0 || threads > kMostThreads) {
    throw OptionError("program.threads", fmt::format("{}", threads),
                      fmt::format("must be from 0 (all cores) to {}", kMostThreads));
  }
  return threads;
}

#ifndef HEADFLOW_TBB
std::shared_ptr<const Executor> thread_executor(int threads) {
  checked_threads(threads);
  return serial_executor();
}
#endif

}  // namespace headflow
