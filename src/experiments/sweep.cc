#include "experiments/sweep.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/parallel.h"
#include "experiments/sweep_file.h"
#include "io/atomic_file.h"

namespace headflow {
namespace {

void prepare(const SweepOptions& options, Session& session) {
  session.keys.read_file(options.file, {"sweep", "figure"});
  if (options.override_keys) options.override_keys(session);
  session.engine.threads = 1;
}

std::string numbers_depend_on(const Session& session) {
  return session.keys.toml({"problem", "run", "point", "flow", "end", "sgd", "compare"});
}

/// What the numbers depend on.
std::string configuration_of(const SweepPlan& plan, const SweepOptions& options) {
  Session session;
  prepare(options, session);
  return session.keys.toml({"problem", "run", "point", "flow", "end", "sgd", "compare"}) + "\n" +
         plan.toml();
}

/// A wrong value is found before hours are spent on the others.
void check_tasks(const SweepPlan& plan, const SweepOptions& options) {
  for (std::size_t i = 0; i < plan.tasks(); ++i) {
    Session session;
    prepare(options, session);
    try {
      plan.apply(i, session);
      const Problem problem(session.problem);
      session.flow.check();
      session.check_end();
      if (std::ranges::count(plan.measures, "sgd") > 0) {
        session.sgd.check(problem);
        if (session.sgd.runs != 1) {
          throw OptionError("sgd.runs", fmt::format("{}", session.sgd.runs),
                            "must be 1 in a sweep: runs are tasks, along an axis of run.seed");
        }
      }
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}: {}", options.file, plan.describe(i), e.what()));
    }
  }
}

/// What the numbers of a task depend on.
std::string task_configuration(const SweepJob& job, std::size_t task) {
  Session session;
  prepare(job.options, session);
  job.plan.apply(task, session);
  std::string out = numbers_depend_on(session);
  for (const std::string& measure : job.plan.measures) out += measure + "\n";
  return out;
}

/// A sweep on its way.
struct Running {
  const SweepJob* job;
  std::string configuration;
  std::optional<TaskStore> store;
  std::vector<TaskResult> results;
  std::size_t open = 0;
  SweepOutcome outcome;
};

Running start(const SweepJob& job) {
  Running out{&job, configuration_of(job.plan, job.options), {}, {}, 0, {}};
  out.outcome.tasks = job.plan.tasks();
  check_tasks(job.plan, job.options);
  const std::string& path = job.options.output;
  if (is_result_of(path, out.configuration)) {
    out.outcome.done = out.outcome.kept = out.outcome.tasks;
    out.outcome.up_to_date = true;
    return out;
  }
  if (std::filesystem::exists(path) && !job.options.replace) {
    throw Error(
        fmt::format("{}: is the result of another configuration or version of the program; "
                    "remove it, or choose another --output",
                    path));
  }
  check_writable(path);
  const std::string folder = path + ".tasks";
  try {
    out.store.emplace(folder, out.configuration);
  } catch (const FileError&) {
    throw;
  } catch (const Error&) {
    if (!job.options.replace) throw;
    std::filesystem::remove_all(folder);
    out.store.emplace(folder, out.configuration);
  }
  out.results.resize(out.outcome.tasks);
  return out;
}

void finish(Running& sweep) {
  const SweepOptions& options = sweep.job->options;
  Session session;
  prepare(options, session);
  write_sweep(options.output, sweep.job->plan, sweep.results,
              {sweep.configuration, options.command_line, session.engine.seed});
  sweep.store->remove();
  sweep.results.clear();
}

/// One computation, and every task that it answers.
struct Work {
  std::vector<std::pair<Running*, std::size_t>> tasks;
};

/// Tasks that are not kept from an earlier run; equal ones together.
std::vector<Work> open_work(std::vector<Running>& sweeps) {
  std::vector<Work> out;
  std::map<std::string, std::size_t> known;
  for (Running& sweep : sweeps) {
    if (sweep.outcome.up_to_date) continue;
    for (std::size_t i = 0; i < sweep.outcome.tasks; ++i) {
      if (sweep.store->load(i, sweep.results[i])) {
        ++sweep.outcome.kept;
        ++sweep.outcome.done;
        sweep.outcome.seconds += sweep.results[i].seconds;
        continue;
      }
      ++sweep.open;
      const auto [at, fresh] = known.emplace(task_configuration(*sweep.job, i), out.size());
      if (fresh) out.emplace_back();
      if (!fresh) ++sweep.outcome.shared;
      out[at->second].tasks.emplace_back(&sweep, i);
    }
  }
  return out;
}

TaskResult compute(const SweepJob& job, std::size_t task, const GoOn& go_on, bool& stopped) {
  const auto begin = std::chrono::steady_clock::now();
  Session session;
  prepare(job.options, session);
  job.plan.apply(task, session);
  auto measured = measure_task(session, job.plan.measures, go_on);
  stopped = !measured;
  if (stopped) return {};
  return {std::move(*measured),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace

std::vector<SweepOutcome> run_sweeps(const std::vector<SweepJob>& jobs, int threads,
                                     const SweepObserver& observer, const GoOn& go_on) {
  std::vector<Running> sweeps;
  sweeps.reserve(jobs.size());
  for (const SweepJob& job : jobs) sweeps.push_back(start(job));
  const std::vector<Work> work = open_work(sweeps);
  std::size_t done = 0, total = 0;
  for (Running& sweep : sweeps) {
    done += sweep.outcome.done;
    total += sweep.outcome.tasks;
    if (!sweep.outcome.up_to_date && sweep.open == 0) finish(sweep);
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  const GoOn on = [&] { return !failed && go_on(); };
  std::mutex mutex;
  std::exception_ptr failure;
  const auto settle = [&](const Work& one, const TaskResult& result) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [sweep, task] : one.tasks) {
      sweep->store->save(task, result);
      sweep->results[task] = result;
      ++sweep->outcome.done;
      sweep->outcome.seconds += result.seconds;
      if (--sweep->open == 0) finish(*sweep);
    }
    done += one.tasks.size();
    const auto& [sweep, task] = one.tasks.front();
    const SweepJob& job = *sweep->job;
    observer(done, total, job.options.label + job.plan.describe(task));
  };
  const Workers workers(threads);
  workers.for_each_block(static_cast<std::size_t>(workers.count()), [&](std::size_t, int) {
    while (on()) {
      const std::size_t at = next++;
      if (at >= work.size()) return;
      const auto& [sweep, task] = work[at].tasks.front();
      try {
        bool stopped = false;
        const TaskResult result = compute(*sweep->job, task, on, stopped);
        if (stopped) return;
        settle(work[at], result);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        failed = true;
        return;
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
  std::vector<SweepOutcome> out;
  for (const Running& sweep : sweeps) out.push_back(sweep.outcome);
  return out;
}

}  // namespace headflow
