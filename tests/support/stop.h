#pragma once

// Observers that stop a computation, for tests of interruption.

#include <atomic>
#include <functional>
#include <memory>

#include "core/context.h"

namespace headflow::testing {

/// Wants to stop now when a condition holds; counts how often it was asked.
class StopNow final : public Observer {
 public:
  explicit StopNow(std::function<bool()> condition) : condition_(std::move(condition)) {}
  Wish wish() const override { return condition_() ? Wish::stop_now : Wish::go_on; }

 private:
  std::function<bool()> condition_;
};

inline Context stopped_when(std::function<bool()> condition, int threads = 1) {
  return Context::threads(threads).watched_by(std::make_shared<StopNow>(std::move(condition)));
}

/// From the n-th question on.
inline Context stopped_after(std::atomic<int>& asked, int n, int threads = 1) {
  return stopped_when([&asked, n] { return ++asked >= n; }, threads);
}

}  // namespace headflow::testing
