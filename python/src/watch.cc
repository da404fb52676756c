#include "watch.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace headflow::python {

void Watch::status(const Status& now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_ = true;
  fraction_ = now.fraction;
  time_ = now.time;
  loss_ = now.loss;
  count_ = now.count;
  total_ = now.total;
  seconds_left_ = now.seconds_left;
  unit_ = now.unit;
  what_ = now.what;
}

void Watch::say(const char* kind, std::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  remarks_.emplace_back(kind, std::string(text));
}

void Watch::tell(const nb::object& told) {
  std::vector<std::pair<std::string, std::string>> remarks;
  nb::dict numbers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    remarks.swap(remarks_);
    if (std::exchange(news_, false)) {
      numbers["fraction"] = fraction_;
      numbers["time"] = time_;
      numbers["loss"] = loss_;
      numbers["count"] = count_;
      numbers["total"] = total_;
      numbers["seconds_left"] = seconds_left_;
      numbers["unit"] = nb::str(unit_.c_str(), unit_.size());
      numbers["what"] = nb::str(what_.c_str(), what_.size());
    }
  }
  if (told.is_none()) return;
  for (const auto& [kind, text] : remarks) {
    told(nb::str(kind.c_str()), nb::str(text.c_str(), text.size()));
  }
  if (numbers.size() > 0) told(nb::str("status"), numbers);
}

namespace {

/// The watches of all threads.
class Running {
 public:
  void add(Watch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(watch);
  }
  void remove(Watch* watch) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::erase(all_, watch);
    }
    changed_.notify_all();
  }
  void stop_all() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (Watch* watch : all_) {
      watch->stop();
      watch->stop();
    }
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return all_.empty(); });
  }
  static Running& instance() {
    static Running all;
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watch*> all_;
};

/// While it lives a watch is one of them.
class Registered {
 public:
  explicit Registered(Watch* watch) : watch_(watch) { Running::instance().add(watch); }
  ~Registered() { Running::instance().remove(watch_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  Watch* watch_;
};

/// Ends the thread also if Python's side leaves by an exception.
class Worker {
 public:
  Worker(const std::function<void(const Context&)>& compute, const Context& context)
      : thread_([this, &compute, context] {
          try {
            compute(context);
          } catch (...) {
            failure_ = std::current_exception();
          }
          {
            const std::lock_guard<std::mutex> lock(mutex_);
            done_ = true;
          }
          changed_.notify_one();
        }) {}
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool wait(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return done_; });
  }
  void join() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

bool run_watched(const std::function<void(const Context&)>& compute, int threads,
                 const nb::object& told) {
  using std::chrono::milliseconds;
  const auto watch = std::make_shared<Watch>();
  const Registered registered(watch.get());
  Context context = threads == 1 ? Context{} : Context::threads(threads);
  context.observer = watch;
  bool interrupted = false;
  std::optional<nb::python_error> failure;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (nb::python_error& error) {
      watch->stop();
      if (error.matches(PyExc_KeyboardInterrupt)) {
        interrupted = true;
      } else if (!failure) {
        failure.emplace(std::move(error));
      }
    }
  };
  const auto look = [&] {
    attempt([] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
    if (!failure) attempt([&] { watch->tell(told); });
  };
  std::exception_ptr thrown;
  {
    const nb::gil_scoped_release without_python;
    Worker worker(compute, context);
    for (milliseconds pause{5}; !worker.wait(pause);
         pause = std::min(2 * pause, milliseconds{50})) {
      const nb::gil_scoped_acquire with_python;
      look();
    }
    try {
      worker.join();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (!failure) attempt([&] { watch->tell(told); });
  if (failure) throw std::move(*failure);
  if (thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Interrupted&) {
      if (!interrupted) throw;
      return true;
    }
  }
  return interrupted;
}

void stop_everything() {
  const nb::gil_scoped_release without_python;
  Running::instance().stop_all();
}

}  // namespace headflow::python
