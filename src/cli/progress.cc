#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace headflow {
namespace {

constexpr double kBarInterval = 0.1;    // seconds between redraws
constexpr double kLineInterval = 10.0;  // seconds between lines

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds < 360000.0)) return "--";
  const auto total = static_cast<long>(std::ceil(seconds));
  const long h = total / 3600, m = total / 60 % 60, s = total % 60;
  return h > 0 ? fmt::format("{}:{:02}:{:02}", h, m, s) : fmt::format("{}:{:02}", m, s);
}

Progress::Style Progress::detect(bool quiet) {
  if (quiet) return Style::quiet;
  return isatty(STDERR_FILENO) ? Style::bar : Style::lines;
}

Progress::Progress(Style style, std::string label)
    : style_(style), label_(std::move(label)), start_(Clock::now()), last_(start_) {}

Progress::~Progress() { finish(); }

void Progress::update(double fraction, const std::string& status, double count, const char* unit) {
  if (style_ == Style::quiet) return;
  const auto now = Clock::now();
  const std::chrono::duration<double> since = now - last_, elapsed = now - start_;
  if (since.count() < (style_ == Style::bar ? kBarInterval : kLineInterval)) return;
  last_ = now;

  fraction = std::clamp(fraction, 0.0, 1.0);
  const double left = fraction > 0 ? elapsed.count() * (1.0 - fraction) / fraction : HUGE_VAL;
  const std::string text = fmt::format("{:3.0f}%  {}  {:.3g} {}/s  {} left", 100 * fraction, status,
                                       count / elapsed.count(), unit, duration_text(left));
  if (style_ == Style::lines) {
    fmt::print(stderr, "{}  {}\n", label_, text);
    return;
  }
  const int room = terminal_width() - static_cast<int>(label_.size() + text.size()) - 6;
  std::string bar;
  if (room >= 10) {
    const int width = std::min(room, 40);
    const int full = static_cast<int>(std::lround(fraction * width));
    bar = fmt::format("[{}{}] ", std::string(static_cast<std::size_t>(full), '#'),
                      std::string(static_cast<std::size_t>(width - full), '.'));
  }
  fmt::print(stderr, "\r\033[K{} {}{}", label_, bar, text);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::finish() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

Elapsed::Elapsed(Progress::Style style, std::string label) {
  if (style == Progress::Style::quiet) return;
  thread_ = std::thread([this, style, label = std::move(label)] { watch(style, label); });
}

Elapsed::~Elapsed() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  done_.notify_one();
  thread_.join();
}

void Elapsed::watch(Progress::Style style, const std::string& label) {
  const bool bar = style == Progress::Style::bar;
  std::unique_lock<std::mutex> lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (done_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) break;
    if (bar) {
      fmt::print(stderr, "\r\033[K{}  {}", label, duration_text(seconds));
      std::fflush(stderr);
    } else if (seconds % static_cast<int>(kLineInterval) == 0) {
      fmt::print(stderr, "{}  {}\n", label, duration_text(seconds));
    }
  }
  if (bar) fmt::print(stderr, "\r\033[K");
}

}  // namespace headflow
