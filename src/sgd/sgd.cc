#include "sgd/sgd.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/memory.h"
#include "core/require.h"
#include "core/suggest.h"
#include "sgd/memory.h"

namespace headflow {
namespace {

/// |k_h|^2 this large is on its way to infinity: everything of interest is below 1e4.
constexpr double kDiverged = 1e10;

/// Throws OptionError if the runs need more than three quarters of the memory there is.
void require_memory(const Problem& problem, const SgdOptions& options, int workers) {
  const SgdMemory need = sgd_memory(problem, options, workers);
  const double there = machine_memory(), runs = options.runs;
  if (runs * need.run + need.records <= 0.75 * there) return;
  const bool records = need.records > runs * need.run,
             direct = options.method == SgdAlgorithm::direct;
  const char* key = records ? "outputs" : runs > 1 ? "runs" : direct ? "dim" : "method";
  const std::string value = records    ? fmt::format("{}", options.outputs)
                            : runs > 1 ? fmt::format("{}", options.runs)
                            : direct   ? fmt::format("{}", options.dim)
                                       : in_quotes(to_string(options.method));
  throw OptionError(
      fmt::format("sgd.{}", key), value,
      fmt::format(
          "needs about {} of memory ({} run{} of {} each, and {} for what is recorded), more "
          "than three quarters of the {} there are; {}",
          bytes_text(runs * need.run + need.records), options.runs, runs > 1 ? "s" : "",
          bytes_text(need.run), bytes_text(need.records), bytes_text(there),
          records    ? "take fewer outputs or runs"
          : runs > 1 ? "take fewer runs at a time, the others with sgd.first_run"
          : direct
              ? "take fewer program.threads, or sgd.method = \"reduced\", which has no vectors of "
                "dimension D"
              : "take fewer program.threads, tokens or heads"));
}

}  // namespace

void SgdOptions::check(const Problem& problem, int workers) const {
  if (!problem.trains("m") || !problem.trains("R")) {
    throw OptionError("problem.train", "without m or R",
                      "SGD trains the vectors k_h, and with them both m and R");
  }
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  require(dim >= problem.F() + problem.H() && dim <= std::int64_t{1} << 52, "sgd.dim",
          static_cast<double>(dim),
          fmt::format("must be from features + heads = {} to 2^52", problem.F() + problem.H()));
  if (method == SgdAlgorithm::direct) {
    require(
        static_cast<double>(dim) * problem.L() <= 1e8, "sgd.dim", static_cast<double>(dim),
        fmt::format("is too large for the direct method: a sample of {} tokens would have {:.2g} "
                    "numbers, more than 10^8; sgd.method = \"reduced\" has no such limit",
                    problem.L(), static_cast<double>(dim) * problem.L()));
  } else {
    const double sample = problem.L() * (problem.F() + 3.0 * problem.H() + 16);
    if (sample > 1e8) {
      throw OptionError("problem.tokens", fmt::format("{}", problem.L()),
                        fmt::format("is too large for SGD with these heads and features: a sample "
                                    "would have {:.2g} numbers, more than 10^8",
                                    sample));
    }
  }
  require(batch >= 1 && batch <= 1'000'000'000, "sgd.batch", static_cast<double>(batch),
          "must be from 1 to 10^9");
  require(positive(lr), "sgd.lr", lr, "must be finite and positive");
  require(steps >= 0 && steps <= 1'000'000'000'000, "sgd.steps", static_cast<double>(steps),
          "must be from 0 to 10^12");
  require(positive(tau), "sgd.tau", tau, "must be finite and positive");
  require(steps > 0 || tau / lr < 1e12, "sgd.tau", tau, "is more than 10^12 steps at this sgd.lr");
  require(runs >= 1 && runs < 1 << 22, "sgd.runs", runs, "must be from 1 to 4,194,303");
  require(first_run >= 0 && first_run < 1 << 22, "sgd.first_run", first_run,
          "must be from 0 to 4,194,303");
  require(outputs >= 1 && outputs <= 10'000'000, "sgd.outputs", outputs, "must be from 1 to 10^7");
  // Beyond, the numbers of samples, which key their randomness, would come round again.
  const double samples = static_cast<double>(total_steps()) * static_cast<double>(batch);
  require(samples <= 1e17, "sgd.batch", static_cast<double>(batch),
          fmt::format("times the {} steps is more than 10^17 samples", total_steps()));
  require_memory(problem, *this, workers);
}

std::int64_t SgdOptions::total_steps() const {
  return steps > 0 ? steps : std::max<std::int64_t>(1, std::llround(tau / lr));
}

std::vector<std::int64_t> SgdOptions::output_steps() const {
  const std::int64_t last = total_steps();
  std::vector<std::int64_t> out{0};
  for (int i = 1; i <= outputs; ++i) {
    const double fraction = i / static_cast<double>(outputs);
    const double step = spacing == Spacing::linear ? static_cast<double>(last) * fraction
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

Sgd::Sgd(const Problem& problem, const SgdOptions& options, std::uint64_t seed,
         const std::vector<SgdState>& starts, const Context& context)
    : options_(options),
      context_(context),
      workers_({context.executor, nullptr}) {  // a step that is stopped says so, and does not throw
  options.check(problem, workers_.count());
  layout_ = problem.layout();
  output_steps_ = options.output_steps();
  for (std::size_t run = 0; run < starts.size(); ++run) {
    const SgdSetting setting{
        options.dim, options.batch, options.lr, seed,
        static_cast<std::uint32_t>(options.first_run) + static_cast<std::uint32_t>(run)};
    const auto make = options.method == SgdAlgorithm::direct ? make_direct : make_reduced;
    runs_.push_back(make(problem, setting, starts[run], workers_));
  }
  recorded_.resize(runs_.size());
  // About half a second of work, at 20 ns a token coordinate (5 ns a number for `direct`).
  const double columns = options.method == SgdAlgorithm::direct
                             ? 0.25 * static_cast<double>(options.dim)
                             : static_cast<double>(problem.F() + 2 * problem.H());
  const double work = 2e-8 * columns * problem.L() * static_cast<double>(options.batch) *
                      static_cast<double>(runs_.size());
  steps_at_once_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e6, 0.5 / work)));
}

bool Sgd::advance() {
  // The step after an output gives the loss of the batch that follows it.
  const std::int64_t output = output_steps_[next_];
  const std::int64_t until = std::min(output, step_ + steps_at_once_);
  const bool records = until == output, last = next_ + 1 == output_steps_.size();
  std::atomic<bool> bad = false, stopped = false;
  std::vector<std::vector<double>> before(runs_.size());
  std::vector<SgdRecord> found(runs_.size());
  workers_.for_each_block(runs_.size(), [&](std::size_t i, int /*worker*/) {
    if (stopped) return;
    SgdMethod& run = *runs_[i];
    BatchLoss loss;
    const auto go = [&](std::int64_t step) {
      if (!run.try_step(step, context_, loss)) stopped = true;
      return !stopped;
    };
    before[i] = run.save();
    for (std::int64_t step = step_; step < until; ++step) {
      if (!go(step)) return;
    }
    if (!records) return;
    found[i].state = run.state();
    if (!found[i].state.all_finite() || found[i].state.q().diagonal().maxCoeff() > kDiverged) {
      bad = true;
    }
    const std::vector<double> end = last ? run.save() : std::vector<double>{};
    if (!go(until)) return;
    if (last) run.restore(end);
    found[i].loss = loss;
  });
  if (stopped) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (!before[i].empty()) runs_[i]->restore(before[i]);
    }
    return false;
  }
  step_ = until;
  if (!records) return true;
  if (!last) ++step_;
  ++next_;
  diverged_ = bad;
  // Numbers that say nothing are not recorded.
  if (diverged_ && !recorded_.front().empty()) return true;
  for (std::size_t i = 0; i < runs_.size(); ++i) recorded_[i].push_back(std::move(found[i]));
  return true;
}

SgdCheckpoint Sgd::checkpoint() const {
  SgdCheckpoint out{step_, {}, recorded_};
  for (const auto& run : runs_) out.saved.push_back(run->save());
  return out;
}

void Sgd::check(const SgdCheckpoint& checkpoint) const {
  const auto require_that = [](bool holds, const std::string& what) {
    if (!holds) throw Error(fmt::format("it does not fit these runs: {}", what));
  };
  const std::size_t runs = runs_.size();
  require_that(checkpoint.saved.size() == runs && checkpoint.recorded.size() == runs,
               fmt::format("it has {} runs, not {}", checkpoint.saved.size(), runs));
  const std::size_t done = checkpoint.recorded.front().size();
  require_that(done >= 1 && done <= output_steps_.size(),
               fmt::format("it has {} output times, not 1 to {}", done, output_steps_.size()));
  const bool finished = done == output_steps_.size();
  const std::int64_t least = output_steps_[done - 1] + (finished ? 0 : 1),
                     most = finished ? least : output_steps_[done];
  require_that(checkpoint.step >= least && checkpoint.step <= most,
               fmt::format("{} output times belong to steps {} to {}, not {}", done, least, most,
                           checkpoint.step));
  const SgdState shape = runs_.front()->state();
  for (std::size_t i = 0; i < runs; ++i) {
    require_that(checkpoint.saved[i].size() == runs_[i]->save().size(), "sizes of its states");
    require_that(checkpoint.recorded[i].size() == done, "the output times of its runs");
    for (const SgdRecord& record : checkpoint.recorded[i]) {
      const SgdState& state = record.state;
      require_that(state.C.rows() == shape.C.rows() && state.C.cols() == shape.C.cols() &&
                       state.U.rows() == shape.U.rows() && state.U.cols() == shape.U.cols() &&
                       state.Lambda.rows() == shape.Lambda.rows() &&
                       state.Lambda.cols() == shape.Lambda.cols() &&
                       state.blocks.size() == shape.blocks.size(),
                   "sizes of its records");
      require_that(state.all_finite() && state.C.allFinite(), "a record that is not finite");
    }
  }
}

void Sgd::restore(const SgdCheckpoint& checkpoint) {
  check(checkpoint);
  step_ = checkpoint.step;
  recorded_ = checkpoint.recorded;
  for (auto& run : recorded_) {
    for (SgdRecord& record : run) {  // a file has the numbers alone
      Blocks blocks(layout_);
      blocks.values() = record.state.blocks.values();
      record.state.blocks = std::move(blocks);
    }
  }
  next_ = recorded_.front().size();
  diverged_ = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i]->restore(checkpoint.saved[i]);
}

}  // namespace headflow
