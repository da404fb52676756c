#pragma once

// A computation on a terminal: its progress, its remarks, and signals.

#include <chrono>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "core/observer.h"

namespace headflow::cli {

/// From the first status on there is something to keep: an interrupt then stops the computation
/// within a second, and what there is is kept.
class Watch final : public Observer {
 public:
  Watch(std::string label, bool quiet);

  Wish wish() const override;
  void status(const Status& now) override;
  void note(std::string_view text) override;
  void warn(std::string_view text) override;
  /// Removes the bar.
  void finish() { progress_.finish(); }

 private:
  bool quiet_;
  std::chrono::steady_clock::time_point begin_;
  Progress progress_;
};

/// A context with as many threads as [program] gives, watched until this is destroyed.
class Watched {
 public:
  Watched(const Invocation& call, const std::string& label);
  ~Watched() { watch_->finish(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  operator const Context&() const { return context_; }  // NOLINT: that is what it is
  const Context* operator->() const { return &context_; }

 private:
  std::shared_ptr<Watch> watch_;
  Context context_;
};

}  // namespace headflow::cli
