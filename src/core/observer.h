#pragma once

// The one way in which a long computation says where it is and is asked to stop: from the deepest
// loop to a terminal's bar, a notebook's, a page's, or a signal.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace headflow {

/// Where a computation is; what does not apply is left out.
struct Status {
  double fraction = NAN;          ///< done, from 0 to 1
  double time = NAN, loss = NAN;  ///< tau and the loss there, of what is trained
  double count = 0, total = NAN;  ///< work done so far, and all of it,
  double before = 0;              ///< (of what is done, by an earlier computation)
  std::string_view unit = "";     ///< in these units: "evaluations"
  std::string_view what = "";     ///< the last thing done: "heads 3, prior flipping"
  double seconds_left = NAN;      ///< if the computation knows better than count and fraction
};

enum class Wish {
  go_on,
  stop,      ///< at the end of a step: what there is is kept
  stop_now,  ///< from within: Interrupted is thrown where there is nothing to keep
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Asked often, from any thread.
  virtual Wish wish() const { return Wish::go_on; }
  /// Told after every step, by one thread at a time.
  virtual void status(const Status& /*now*/) {}
  /// Something that a user should know, and that is no error.
  virtual void note(std::string_view /*text*/) {}
  /// Something that a user must know: what was damaged, and what is done instead.
  virtual void warn(std::string_view text) { note(text); }
};

/// Stops at the end of a step when a condition holds, or when another observer wants to, who is
/// told of everything.
class StopWhen final : public Observer {
 public:
  explicit StopWhen(std::function<bool()> condition, std::shared_ptr<Observer> told = nullptr)
      : condition_(std::move(condition)), told_(std::move(told)) {}
  Wish wish() const override {
    const Wish other = told_ ? told_->wish() : Wish::go_on;
    return other == Wish::go_on && condition_() ? Wish::stop : other;
  }
  void status(const Status& now) override {
    if (told_) told_->status(now);
  }
  void note(std::string_view text) override {
    if (told_) told_->note(text);
  }
  void warn(std::string_view text) override {
    if (told_) told_->warn(text);
  }

 private:
  std::function<bool()> condition_;
  std::shared_ptr<Observer> told_;
};

/// Says which part of a computation it is whose steps another observer is told of.
class Labelled final : public Observer {
 public:
  Labelled(std::shared_ptr<Observer> told, std::string label)
      : told_(std::move(told)), label_(std::move(label)) {}
  Wish wish() const override { return told_->wish(); }
  void status(const Status& now) override {
    Status labelled = now;
    if (labelled.what.empty()) labelled.what = label_;
    told_->status(labelled);
  }
  void note(std::string_view text) override { told_->note(text); }
  void warn(std::string_view text) override { told_->warn(text); }

 private:
  std::shared_ptr<Observer> told_;
  std::string label_;
};

}  // namespace headflow
