#pragma once

// What a computation is handed besides its options: who does the work, and who watches it. None of
// it changes a number. By default one thread, and nobody.

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/executor.h"
#include "core/observer.h"

namespace headflow {

struct Context {
  std::shared_ptr<const Executor> executor = serial_executor();
  std::shared_ptr<Observer> observer = nullptr;

  static Context threads(int number) { return {thread_executor(number), nullptr}; }
  /// One thread, until a condition holds.
  static Context until(std::function<bool()> condition) {
    return {serial_executor(), std::make_shared<StopWhen>(std::move(condition))};
  }
  /// The same, until a condition holds.
  Context or_when(std::function<bool()> condition) const {
    return watched_by(std::make_shared<StopWhen>(std::move(condition), observer));
  }
  /// The same observer on one thread: for work that is a block of other work.
  Context serial() const { return {serial_executor(), observer}; }
  /// The same, for a part of the work that has a name.
  Context labelled(const std::string& label) const {
    return observer ? watched_by(std::make_shared<Labelled>(observer, label)) : *this;
  }
  Context watched_by(std::shared_ptr<Observer> other) const { return {executor, std::move(other)}; }

  /// To be asked between steps; false: keep what there is, and stop.
  bool goes_on() const { return !observer || observer->wish() == Wish::go_on; }
  /// To be called from within long steps; throws Interrupted.
  void check() const {
    if (observer && observer->wish() == Wish::stop_now) throw Interrupted();
  }
  void status(const Status& now) const {
    if (observer) observer->status(now);
  }
  void note(std::string_view text) const {
    if (observer) observer->note(text);
  }
  void warn(std::string_view text) const {
    if (observer) observer->warn(text);
  }
};

/// For threads that ask often whether to go on: once one of them was told to stop, all are.
class StopLatch {
 public:
  explicit StopLatch(const Context& context) : context_(context) {}
  bool goes_on() {
    if (!stopped_ && !context_.goes_on()) stopped_ = true;
    return !stopped_;
  }
  bool stopped() const { return stopped_; }

 private:
  const Context& context_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace headflow
