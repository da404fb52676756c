#pragma once

// A computation on a thread of its own, while Python's thread waits: it looks for signals, shows
// progress and hands on remarks twenty times a second. No other thread touches Python.

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/context.h"

namespace headflow::python {

namespace nb = nanobind;

class Watch final : public Observer {
 public:
  /// The second Ctrl-C does not wait for the end of a step.
  Wish wish() const override {
    const int asked = stops_.load(std::memory_order_relaxed);
    return asked == 0 ? Wish::go_on : asked == 1 ? Wish::stop : Wish::stop_now;
  }
  void status(const Status& now) override;
  void note(std::string_view text) override { say("note", text); }
  void warn(std::string_view text) override { say("warning", text); }

  void stop() { ++stops_; }
  /// Hands what was told meanwhile to Python: told(kind, text or numbers).
  void tell(const nb::object& told);

 private:
  void say(const char* kind, std::string_view text);

  std::atomic<int> stops_ = 0;
  std::mutex mutex_;
  bool news_ = false;
  double fraction_ = NAN, time_ = NAN, loss_ = NAN, seconds_left_ = NAN, count_ = 0, total_ = NAN;
  std::string unit_, what_;
  std::vector<std::pair<std::string, std::string>> remarks_;
};

/// Runs `compute` with the number of threads (0: all cores); true if Ctrl-C stopped it. Python
/// exceptions other than KeyboardInterrupt, of `told` or of a signal handler, stop it, too, and go
/// on. `told` may be None.
bool run_watched(const std::function<void(const Context&)>& compute, int threads,
                 const nb::object& told);

/// Stops all that runs, in any thread, and waits for it: before the interpreter ends, which a
/// daemon thread must not find out while it computes.
void stop_everything();

}  // namespace headflow::python
