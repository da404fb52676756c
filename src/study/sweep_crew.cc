#include "study/sweep_crew.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "study/measure_info.h"
#include "study/time_left.h"

namespace headflow {
namespace {

using Clock = std::chrono::steady_clock;
using Sweeps = std::vector<RunningSweep*>;

constexpr std::size_t kMostNotes = 5;

/// A list of measures, and every task that it answers.
struct Answer {
  Measures measures;
  std::vector<std::pair<RunningSweep*, std::size_t>> tasks;
};

/// One computation: all that is measured of one configuration.
struct Work {
  std::vector<Answer> answers;
  TaskCost cost;

  RunningSweep& sweep() const { return *answers.front().tasks.front().first; }
  std::size_t task() const { return answers.front().tasks.front().second; }
  std::size_t tasks() const {
    std::size_t out = 0;
    for (const Answer& one : answers) out += one.tasks.size();
    return out;
  }
  Answer& answer(const Measures& measures) {
    const auto same = std::ranges::find(answers, measures, &Answer::measures);
    return same != answers.end() ? *same : answers.emplace_back(Answer{measures, {}});
  }
  /// All of the lists, each once.
  Measures all_measures() const {
    Measures out;
    for (const Answer& one : answers) {
      for (const Measure m : one.measures) {
        if (std::ranges::find(out, m) == out.end()) out.push_back(m);
      }
    }
    return out;
  }
};

/// Tasks that are not kept from an earlier run, the longest first; those of one configuration
/// together.
std::vector<Work> open_work(const Sweeps& sweeps, const Context& context) {
  std::vector<Work> out;
  std::map<Fingerprint, std::size_t> known;
  std::map<std::string, std::size_t> groups;
  std::size_t damaged = 0;
  for (RunningSweep* sweep : sweeps) {
    if (sweep->outcome.up_to_date) continue;
    const SweepTasks& tasks = sweep->tasks();
    const Measures& measures = tasks.plan().measures;
    for (std::size_t i = 0; i < tasks.count(); ++i) {
      if (!context.goes_on()) throw Interrupted();
      const Config config = tasks.config_of(i);
      KnownTasks::Loaded kept;
      if (TaskKeeper* keeper = sweep->keeper()) kept = keeper->load(tasks.identity(config));
      if (kept.found == KnownTasks::Found::whole) {
        sweep->keep(i, kept.result);
        continue;
      }
      if (kept.found == KnownTasks::Found::damaged && ++damaged <= kMostNotes) {
        context.note(
            fmt::format("{}; the task ({}) is computed again", kept.why, tasks.describe(i)));
      }
      const auto [at, fresh] = known.emplace(computed_from(config), out.size());
      if (fresh) out.emplace_back();
      sweep->outcome.shared += fresh ? 0 : 1;
      Work& work = out[at->second];
      work.answer(measures).tasks.emplace_back(sweep, i);
      const Measures all = work.all_measures();
      const std::string alike =
          fmt::format("{} {} {}", fmt::join(names_of(all), " "), config.problem.activation,
                      to_string(config.run.engine));
      const std::size_t group = groups.emplace(alike, groups.size()).first->second;
      work.cost = {group, expected_seconds(config, all)};
    }
  }
  if (damaged > kMostNotes) {
    context.note(fmt::format("{} more are damaged, and computed again", damaged - kMostNotes));
  }
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [](const Work& one) { return one.cost.seconds; });
  return out;
}

/// Computes what is open, on all workers.
class Crew {
 public:
  Crew(const Sweeps& sweeps, std::vector<Work> work, const Context& context)
      : work_(std::move(work)),
        left_(costs(work_), context.executor->workers()),
        context_(context),
        of_task_(context.serial().watched_by(std::make_shared<TaskWatch>(*this))),
        begin_(Clock::now()) {
    for (const RunningSweep* sweep : sweeps) {
      kept_ += sweep->outcome.done;
      tasks_ += sweep->outcome.tasks;
    }
    done_ = kept_;
  }

  void run() {
    context_.executor->run(static_cast<std::size_t>(context_.executor->workers()),
                           [&](std::size_t, int) { work(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Of a task only its end is told; asked, it reports what the others have done meanwhile.
  class TaskWatch final : public Observer {
   public:
    explicit TaskWatch(Crew& crew) : crew_(crew) {}
    Wish wish() const override { return crew_.on() ? Wish::go_on : Wish::stop_now; }

   private:
    Crew& crew_;
  };

  static std::vector<TaskCost> costs(const std::vector<Work>& work) {
    std::vector<TaskCost> out;
    for (const Work& one : work) out.push_back(one.cost);
    return out;
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool on() {
    if (failed_ || !context_.goes_on()) return false;
    if (now() >= next_report_) {
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock && now() >= next_report_) report();
    }
    return true;
  }

  /// With the mutex held.
  void report() {
    const double seconds = now();
    next_report_ = seconds + 1;
    context_.status({.fraction = static_cast<double>(done_) / static_cast<double>(tasks_),
                     .count = static_cast<double>(done_),
                     .total = static_cast<double>(tasks_),
                     .before = static_cast<double>(kept_),
                     .unit = "tasks",
                     .what = last_,
                     .seconds_left = left_.seconds(seconds)});
  }

  void work() {
    while (on()) {
      const std::size_t at = next_++;
      if (at >= work_.size()) return;
      const SweepTasks& tasks = work_[at].sweep().tasks();
      const std::size_t task = work_[at].task();
      try {
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          left_.start(at, now());
        }
        const Config config = tasks.config_of(task);
        if (tasks.identity(config).fingerprint() != tasks.fingerprints()[task]) {
          throw Error(tasks.about(task) + "the file that it starts from has changed meanwhile");
        }
        std::vector<Measures> lists;
        for (const Answer& one : work_[at].answers) lists.push_back(one.measures);
        const auto results = tasks.compute(task, config, lists, of_task_);
        if (!results) return;
        settle(at, config, *results);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
        return;
      }
    }
  }

  void settle(std::size_t at, const Config& config, const std::vector<TaskResult>& results) {
    const std::lock_guard<std::mutex> lock(mutex_);
    left_.finish(at, now());
    const Work& one = work_[at];
    for (std::size_t i = 0; i < results.size(); ++i) {
      const RunningSweep* saved = nullptr;  // tasks of a sweep stand together
      for (const auto& [sweep, task] : one.answers[i].tasks) {
        if (std::exchange(saved, sweep) != sweep && sweep->keeper()) {
          sweep->keeper()->save(sweep->tasks().identity(config), results[i]);
        }
        sweep->settle(task, results[i]);
        if (sweep->complete()) sweep->finish();
      }
    }
    done_ += one.tasks();
    last_ = one.sweep().label() + one.sweep().tasks().describe(one.task());
    report();
  }

  std::vector<Work> work_;
  TimeLeft left_;
  const Context& context_;
  Context of_task_;
  Clock::time_point begin_;
  std::mutex mutex_;  // of what follows, the time left, and the sweeps' results
  std::size_t kept_ = 0, done_ = 0, tasks_ = 0;
  std::string last_;  // about the last task done
  std::exception_ptr failure_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<double> next_report_ = 0;
};

}  // namespace

RunningSweep::RunningSweep(SweepTasks tasks, std::string label)
    : tasks_(std::move(tasks)), label_(std::move(label)) {
  outcome.tasks = tasks_.count();
  outcome.configuration = tasks_.configuration();
}

void RunningSweep::settle(std::size_t task, const TaskResult& result) {
  ++outcome.done;
  outcome.seconds += result.seconds;
  for (const Quantity& q : result.quantities) {
    if (q.name != "diverged" || q.values.empty()) continue;
    outcome.diverged += q.values.front() == 1.0 ? 1 : 0;
  }
  take(task, result);
}

void RunningSweep::keep(std::size_t task, const TaskResult& result) {
  ++outcome.kept;
  settle(task, result);
}

void run_together(const std::vector<RunningSweep*>& sweeps, const Context& context) {
  try {
    std::vector<Work> work = open_work(sweeps, context);
    for (RunningSweep* sweep : sweeps) {
      if (!sweep->outcome.up_to_date && sweep->complete()) sweep->finish();
    }
    Crew(sweeps, std::move(work), context).run();
  } catch (const Interrupted&) {
    // what is done is kept
  }
}

}  // namespace headflow
