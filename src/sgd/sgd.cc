#include "sgd/sgd.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

/// |k_h|^2 this large is on its way to infinity: everything of interest is below 1e4.
constexpr double kDiverged = 1e10;

void require(bool holds, const char* key, double value, const std::string& rule) {
  if (!holds) throw OptionError(fmt::format("sgd.{}", key), fmt::format("{}", value), rule);
}

void require_choice(const char* key, const std::string& value,
                    const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw OptionError(fmt::format("sgd.{}", key), in_quotes(value), one_of(choices, value));
}

}  // namespace

void SgdOptions::check(const Problem& problem) const {
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  require_choice("method", method, {"reduced", "direct"});
  require(dim >= problem.F() + problem.H() && dim <= std::int64_t{1} << 52, "dim",
          static_cast<double>(dim),
          fmt::format("must be from features + heads = {} to 2^52", problem.F() + problem.H()));
  if (method == "direct") {
    require(dim * problem.L() <= 100'000'000, "dim", static_cast<double>(dim),
            "is too large for the direct method, which holds a sample in memory; "
            "--method reduced has no such limit");
  }
  require(batch >= 1 && batch <= 1'000'000'000, "batch", static_cast<double>(batch),
          "must be from 1 to 10^9");
  require(positive(lr), "lr", lr, "must be finite and positive");
  require(steps >= 0, "steps", static_cast<double>(steps), "must not be negative");
  require(positive(tau), "tau", tau, "must be finite and positive");
  require(steps > 0 || tau / lr < 1e12, "tau", tau, "is more than 10^12 steps at this sgd.lr");
  require(runs >= 1 && runs < 1 << 22, "runs", runs, "must be from 1 to 4,194,303");
  require(first_run >= 0 && first_run < 1 << 22, "first_run", first_run,
          "must be from 0 to 4,194,303");
  require_choice("init", init, {"law", "point"});
  require(outputs >= 1 && outputs <= 10'000'000, "outputs", outputs, "must be from 1 to 10^7");
  require_choice("spacing", spacing, {"linear", "log"});
  require_choice("loss", loss, {"batch", "population"});
}

std::int64_t SgdOptions::total_steps() const {
  return steps > 0 ? steps : std::max<std::int64_t>(1, std::llround(tau / lr));
}

std::vector<std::int64_t> SgdOptions::output_steps() const {
  const std::int64_t last = total_steps();
  std::vector<std::int64_t> out{0};
  for (int i = 1; i <= outputs; ++i) {
    const double fraction = i / static_cast<double>(outputs);
    const double step = spacing == "linear" ? static_cast<double>(last) * fraction
                                            : std::pow(static_cast<double>(last), fraction);
    const std::int64_t rounded = i == outputs ? last : std::llround(step);
    if (rounded > out.back()) out.push_back(rounded);
  }
  return out;
}

std::vector<SgdState> Sgd::starts(const Problem& problem, const SgdOptions& options,
                                  std::uint64_t seed) {
  std::vector<SgdState> out;
  for (int run = 0; run < options.runs; ++run) {
    out.push_back(initial_state(problem, options.dim, seed,
                                static_cast<std::uint32_t>(options.first_run + run)));
  }
  return out;
}

Sgd::Sgd(const Problem& problem, const SgdOptions& options, std::uint64_t seed, int threads,
         const std::vector<SgdState>& starts)
    : options_(options), workers_(threads), output_steps_(options.output_steps()) {
  options.check(problem);
  for (std::size_t run = 0; run < starts.size(); ++run) {
    const SgdSetting setting{
        options.dim, options.batch, options.lr, seed,
        static_cast<std::uint32_t>(options.first_run) + static_cast<std::uint32_t>(run)};
    const auto make = options.method == "direct" ? make_direct : make_reduced;
    runs_.push_back(make(problem, setting, starts[run], workers_));
  }
  recorded_.resize(runs_.size());
  // About half a second of work, at 20 ns a token coordinate (5 ns a number for `direct`).
  const double columns = options.method == "direct"
                             ? 0.25 * static_cast<double>(options.dim)
                             : static_cast<double>(problem.F() + 2 * problem.H());
  const double work = 2e-8 * columns * problem.L() * static_cast<double>(options.batch) *
                      static_cast<double>(runs_.size());
  steps_at_once_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e6, 0.5 / work)));
}

void Sgd::advance() {
  // The step after an output gives the loss of the batch that follows it.
  const std::int64_t output = output_steps_[next_];
  const std::int64_t until = std::min(output, step_ + steps_at_once_);
  const bool records = until == output, last = next_ + 1 == output_steps_.size();
  std::atomic<bool> bad = false;
  workers_.for_each_block(runs_.size(), [&](std::size_t i, int /*worker*/) {
    SgdMethod& run = *runs_[i];
    for (std::int64_t step = step_; step < until; ++step) run.step(step);
    if (!records) return;
    SgdRecord record{run.state(), {}};
    if (!record.state.all_finite() || record.state.q().diagonal().maxCoeff() > kDiverged) {
      bad = true;
    }
    const std::vector<double> before = last ? run.save() : std::vector<double>{};
    record.loss = run.step(until);
    if (last) run.restore(before);
    recorded_[i].push_back(std::move(record));
  });
  step_ = until;
  if (!records) return;
  if (!last) ++step_;
  ++next_;
  diverged_ = bad;
  // Numbers that say nothing are not recorded.
  for (auto& run : recorded_) {
    if (diverged_ && run.size() > 1) run.pop_back();
  }
}

SgdCheckpoint Sgd::checkpoint() const {
  SgdCheckpoint out{step_, {}, recorded_};
  for (const auto& run : runs_) out.saved.push_back(run->save());
  return out;
}

void Sgd::restore(const SgdCheckpoint& checkpoint) {
  step_ = checkpoint.step;
  recorded_ = checkpoint.recorded;
  next_ = recorded_.front().size();
  for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i]->restore(checkpoint.saved[i]);
}

}  // namespace headflow
