#include "experiments/sweep.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"
#include "experiments/measure_info.h"
#include "experiments/sweep_tasks.h"
#include "experiments/time_left.h"

namespace headflow {
namespace {

using Clock = std::chrono::steady_clock;
using Sweeps = std::vector<std::unique_ptr<RunningSweep>>;

constexpr std::size_t kMostNotes = 5;

/// One computation, and every task that it answers.
struct Work {
  std::vector<std::pair<RunningSweep*, std::size_t>> tasks;
  TaskCost cost;
};

/// Tasks that are not kept from an earlier run, the longest first; equal ones together.
std::vector<Work> open_work(const Sweeps& sweeps, const SweepWatch& watch) {
  std::vector<Work> out;
  std::map<Fingerprint, std::size_t> known;
  std::map<std::string, std::size_t> groups;
  std::size_t damaged = 0;
  Session session;
  for (const auto& sweep : sweeps) {
    if (sweep->outcome.up_to_date) continue;
    const std::vector<std::string>& measures = sweep->job().file.plan.measures;
    for (std::size_t i = 0; i < sweep->tasks(); ++i) {
      stop_unless(watch.go_on);
      sweep->prepare(i, session);
      const TaskStore::Loaded kept = sweep->store().load(sweep->identity(session));
      if (kept.found == TaskStore::Found::whole) {
        sweep->keep(kept.result);
        continue;
      }
      if (kept.found == TaskStore::Found::damaged && ++damaged <= kMostNotes) {
        watch.note(
            fmt::format("{}; the task ({}) is computed again", kept.why, sweep->describe(i)));
      }
      const auto [at, fresh] = known.emplace(sweep->fingerprint(i), out.size());
      if (!fresh) {
        ++sweep->outcome.shared;
      } else {
        const std::string alike = fmt::format("{} {} {}", fmt::join(measures, " "),
                                              session.problem.activation, session.engine.engine);
        const std::size_t group = groups.emplace(alike, groups.size()).first->second;
        out.push_back({{}, {group, expected_seconds(session, measures)}});
      }
      out[at->second].tasks.emplace_back(sweep.get(), i);
    }
  }
  if (damaged > kMostNotes) {
    watch.note(fmt::format("{} more are damaged, and computed again", damaged - kMostNotes));
  }
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [](const Work& one) { return one.cost.seconds; });
  return out;
}

/// Computes what is open, on all threads.
class Crew {
 public:
  Crew(const Sweeps& sweeps, std::vector<Work> work, int threads, const SweepWatch& watch)
      : work_(std::move(work)),
        workers_(threads),
        left_(costs(work_), workers_.count()),
        watch_(watch),
        begin_(Clock::now()) {
    for (const auto& sweep : sweeps) {
      state_.done += sweep->outcome.done;
      state_.tasks += sweep->outcome.tasks;
    }
  }

  void run() {
    workers_.for_each_block(static_cast<std::size_t>(workers_.count()),
                            [&](std::size_t, int) { work(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static std::vector<TaskCost> costs(const std::vector<Work>& work) {
    std::vector<TaskCost> out;
    for (const Work& one : work) out.push_back(one.cost);
    return out;
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool on() {
    if (failed_ || (watch_.go_on && !watch_.go_on())) return false;
    if (now() >= next_report_) {
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock && now() >= next_report_) report();
    }
    return true;
  }

  /// With the mutex held.
  void report() {
    state_.seconds = now();
    state_.left = left_.seconds(state_.seconds);
    next_report_ = state_.seconds + 1;
    if (watch_.progress) watch_.progress(state_);
  }

  void work() {
    Session session;
    while (on()) {
      const std::size_t at = next_++;
      if (at >= work_.size()) return;
      const auto& [sweep, task] = work_[at].tasks.front();
      try {
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          left_.start(at, now());
        }
        sweep->prepare(task, session);
        const TaskIdentity identity = sweep->identity(session);
        if (identity.fingerprint() != sweep->fingerprint(task)) {
          throw Error(fmt::format("{}: {}: the file that it starts from has changed meanwhile",
                                  sweep->job().file.path, sweep->describe(task)));
        }
        const auto result = sweep->compute(task, session, [this] { return on(); });
        if (!result) return;
        settle(at, identity, *result);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
        return;
      }
    }
  }

  void settle(std::size_t at, const TaskIdentity& identity, const TaskResult& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    left_.finish(at, now());
    const Work& one = work_[at];
    const RunningSweep* saved = nullptr;  // tasks of a sweep stand together
    for (const auto& [sweep, task] : one.tasks) {
      if (std::exchange(saved, sweep) != sweep) sweep->store().save(identity, result);
      sweep->settle(result);
      if (sweep->complete()) sweep->finish();
    }
    state_.done += one.tasks.size();
    state_.computed += one.tasks.size();
    const auto& [sweep, task] = one.tasks.front();
    state_.last = sweep->job().label + sweep->describe(task);
    report();
  }

  std::vector<Work> work_;
  Workers workers_;
  TimeLeft left_;
  const SweepWatch& watch_;
  Clock::time_point begin_;
  std::mutex mutex_;  // of what follows, the time left, and the sweeps' results
  SweepProgress state_;
  std::exception_ptr failure_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<double> next_report_ = 0;
};

}  // namespace

std::vector<SweepOutcome> run_sweeps(std::vector<SweepJob> jobs, int threads,
                                     const SweepWatch& watch) {
  std::vector<SweepOutcome> out(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) out[i].tasks = jobs[i].file.plan.tasks();
  Sweeps sweeps;
  try {
    for (SweepJob& job : jobs) {
      sweeps.push_back(std::make_unique<RunningSweep>(std::move(job), threads, watch));
    }
    std::vector<Work> work = open_work(sweeps, watch);
    for (const auto& sweep : sweeps) {
      if (!sweep->outcome.up_to_date && sweep->complete()) sweep->finish();
    }
    Crew(sweeps, std::move(work), threads, watch).run();
  } catch (const Interrupted&) {
    // what is done is kept
  }
  for (std::size_t i = 0; i < sweeps.size(); ++i) out[i] = sweeps[i]->outcome;
  return out;
}

}  // namespace headflow
