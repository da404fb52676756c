#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace headflow {

/// Progress of a long computation, on standard error: a bar that redraws itself on a terminal,
/// a plain line now and then elsewhere, nothing when quiet.
class Progress {
 public:
  enum class Style { bar, lines, quiet };
  /// Bar or lines, by what standard error is.
  static Style detect(bool quiet);

  Progress(Style style, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` done in [0, 1]; `status` such as "tau 12.3  loss 0.4567"; `count` of work items
  /// so far and their unit, for the rate.
  void update(double fraction, const std::string& status, double count, const char* unit);
  /// Removes the bar.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  Style style_;
  std::string label_;
  Clock::time_point start_, last_;
  bool shown_ = false;
};

/// For a computation that cannot say how far it is: from the second second on, the time it has
/// taken, until the object is destroyed.
class Elapsed {
 public:
  Elapsed(Progress::Style style, std::string label);
  ~Elapsed();
  Elapsed(const Elapsed&) = delete;
  Elapsed& operator=(const Elapsed&) = delete;

 private:
  void watch(Progress::Style style, const std::string& label);
  std::mutex mutex_;
  std::condition_variable done_;
  bool stop_ = false;
  std::thread thread_;
};

/// 75 -> "1:15".
std::string duration_text(double seconds);

}  // namespace headflow
