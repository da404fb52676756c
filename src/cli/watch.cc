#include "cli/watch.h"

#include <fmt/format.h>

#include <cmath>

namespace headflow::cli {

Watch::Watch(std::string label, bool quiet)
    : quiet_(quiet),
      begin_(std::chrono::steady_clock::now()),
      progress_(Progress::detect(quiet), std::move(label)) {}

Wish Watch::wish() const {
  if (!interrupted()) return Wish::go_on;
  return computations_go_on() ? Wish::stop : Wish::stop_now;
}

void Watch::status(const Status& now) {
  catch_interrupts();
  double fraction = now.fraction;
  if (std::isfinite(now.seconds_left)) {
    // The bar shows the share of the time since it was made, from which it takes the time left.
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
    fraction = since.count() / (since.count() + now.seconds_left);
  }
  std::string text;
  if (std::isfinite(now.time)) text = fmt::format("tau {:.4g}  loss {:.5f}", now.time, now.loss);
  if (std::isfinite(now.total)) text = fmt::format("{} of {} {}", now.count, now.total, now.unit);
  if (!now.what.empty()) text += fmt::format("{}{}", text.empty() ? "" : "  ", now.what);
  progress_.update(fraction, text, now.count - now.before, std::string(now.unit).c_str());
}

void Watch::note(std::string_view text) { print_note(std::string(text), quiet_); }

void Watch::warn(std::string_view text) { fmt::print(stderr, "headflow: warning: {}\n", text); }

Watched::Watched(const Invocation& call, const std::string& label)
    : watch_(std::make_shared<Watch>(label, call.quiet)),
      context_{thread_executor(call.config.program.threads), watch_} {}

}  // namespace headflow::cli
