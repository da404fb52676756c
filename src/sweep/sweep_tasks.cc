#include "sweep/sweep_tasks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "core/workers.h"
#include "io/atomic_file.h"
#include "io/netcdf_file.h"
#include "io/recorded_start.h"
#include "io/result_file.h"
#include "study/measure_info.h"
#include "study/version.h"
#include "sweep/sweep_result.h"
#include "sweep/what_differs.h"

namespace headflow {
namespace {

constexpr std::size_t kBlock = 2048;        // of tasks that are checked one after the other
constexpr double kMostNumbers = 1e8;        // of a result: it is put together in memory
constexpr std::size_t kFewestSpare = 1000;  // tasks of other plans that a store may hold

}  // namespace

std::string program_identity() { return program_version() + " " + program_commit(); }

TaskIdentity task_identity(Config config, const Measures& measures) {
  take_recorded_start(config);
  return {program_identity(), config_text(config, swept_sections()) +
                                  "\n[sweep]\nmeasure = " + value_text(names_of(measures)) + "\n"};
}

RunningSweep::RunningSweep(SweepJob job, const Context& context) : job_(std::move(job)) {
  const SweepPlan& plan = job_.file.plan;
  outcome.tasks = plan.tasks();
  take_start(context);
  outcome.configuration =
      config_text(job_.file.base, swept_sections(), plan.replaced_keys()) + "\n" + plan.toml();
  if (tasks() > 100 * kBlock) {
    context.note(fmt::format("{} tasks are checked before the first one runs", tasks()));
  }
  check_tasks(context);
  const Problem first(config_of(0).problem);
  for (const std::string& remark : first.notes()) context.note(remark);
  look_at_output(context);
}

/// A start from a file that is the same for all tasks becomes numbers of the configuration.
void RunningSweep::take_start(const Context& context) {
  Config& base = job_.file.base;
  const SweepPlan& plan = job_.file.plan;
  const bool varies = plan.varies("flow.init") || plan.varies("flow.init_from") ||
                      plan.varies("flow.init_run") || plan.varies("flow.init_time");
  if (base.flow.init_from.empty() && !plan.varies("flow.init_from")) return;
  try {
    if (job_.file.point_is_set || plan.varies("problem.p")) {
      throw Error("flow.init_from gives [point] and problem.p, which are set otherwise, too");
    }
    if (std::ranges::none_of(plan.measures, trains)) {
      throw OptionError("flow.init_from", value_text(base.flow.init_from),
                        "none of the measures starts a flow there");
    }
    if (varies) return;
    Config first = plan.config_of(0, base);
    const std::string remark = take_recorded_start(first).note;
    if (!remark.empty()) context.note(remark);
    base.point = first.point;
    base.problem.p = first.problem.p;
    base.flow.init = first.flow.init;
    base.flow.init_from = first.flow.init_from;
    base.flow.init_run = first.flow.init_run;
    base.flow.init_time = first.flow.init_time;
    if (!plan.varies("flow.init_noise")) base.flow.init_noise = first.flow.init_noise;
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", job_.file.path, e.what()));
  }
}

Config RunningSweep::config_of(std::size_t task) const {
  const SweepPlan& plan = job_.file.plan;
  Config config = plan.config_of(task, job_.file.base);
  if (plan.varies("flow.init") && config.flow.init != FlowInit::file) {  // it starts elsewhere
    config.flow.init_from.clear();
    config.flow.init_run = 1;
    config.flow.init_time = Moment::first;
  }
  take_recorded_start(config);
  return config;
}

TaskIdentity RunningSweep::identity(const Config& config) const {
  return task_identity(config, job_.file.plan.measures);
}

Fingerprint RunningSweep::computed_from(const Config& config) {
  return TaskIdentity{program_identity(), config_text(config, swept_sections())}.fingerprint();
}

/// A wrong value is found before hours are spent on the others.
void RunningSweep::check_tasks(const Context& context) {
  const SweepPlan& plan = job_.file.plan;
  fingerprints_.resize(tasks());
  const std::size_t blocks = (tasks() + kBlock - 1) / kBlock;
  std::vector<std::string> wrong(blocks);
  std::vector<double> numbers(blocks, 0.0);
  context.executor->run(blocks, [&](std::size_t block, int) {
    if (!context.goes_on()) throw Interrupted();
    const std::size_t end = std::min(tasks(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      try {
        const Config config = config_of(i);
        check_task(config, plan.measures, job_.file.point_is_set);
        fingerprints_[i] = identity(config).fingerprint();
        numbers[block] = std::max(numbers[block], numbers_of(config, plan.measures));
      } catch (const Error& e) {
        const std::string which = plan.axes.empty() ? "" : plan.describe(i) + ": ";
        wrong[block] = fmt::format("{}: {}{}", job_.file.path, which, e.what());
        return;
      }
    }
  });
  for (const std::string& what : wrong) {
    if (!what.empty()) throw Error(what);
  }
  const double all = *std::ranges::max_element(numbers) * static_cast<double>(tasks());
  if (all > kMostNumbers) {
    throw Error(fmt::format(
        "{}: the result would have {:.2g} numbers, and at most {:.0e} fit: take fewer tasks, or "
        "fewer output times (flow.outputs, sgd.outputs)",
        job_.file.path, all, kMostNumbers));
  }
}

std::string RunningSweep::tasks_folder() const {
  return link_target(job_.output) + kTasksExtension;
}

/// Is there a result already, and may it be replaced?
void RunningSweep::look_at_output(const Context& context) {
  namespace fs = std::filesystem;
  const std::string& path = job_.output;
  const std::string folder = tasks_folder();
  std::error_code error;
  if (is_result_of(path, outcome.configuration)) {
    outcome.done = outcome.kept = outcome.tasks;
    outcome.up_to_date = true;
    if (!job_.keep_tasks && fs::is_directory(folder, error)) TaskStore(folder).remove();
    return;
  }
  check_writable(path);
  const bool there = fs::exists(path, error);
  if (!there || job_.replace) {
    store_.emplace(folder);
    return;
  }
  if (read_attribute(path, "format") != "headflow-sweep") {
    throw Error(
        fmt::format("{}: is there already, and is no result of a sweep; choose another "
                    "result.output",
                    path));
  }
  if (is_damaged(path)) {
    if (read_attribute(path, "configuration") != outcome.configuration) {
      throw Error(
          fmt::format("{}: is damaged, and was computed with another configuration; remove "
                      "it, or choose another result.output",
                      path));
    }
    context.note(fmt::format("{} is damaged, and is put together again from its tasks", path));
    store_.emplace(folder);
    return;
  }
  const std::string other =
      what_differs(job_.file.base, job_.file.plan, read_attribute(path, "configuration"));
  const std::string why = other.empty() ? "by another version of the program"
                                        : fmt::format("with another configuration ({})", other);
  if (fs::is_directory(folder, error)) store_.emplace(folder);
  std::size_t known = 0;
  for (const Fingerprint& one : fingerprints_) known += store_ && store_->has(one) ? 1 : 0;
  if (known == 0) {
    throw Error(
        fmt::format("{}: was computed {}, and none of its tasks is one of these; remove "
                    "it, or choose another result.output",
                    path, why));
  }
  context.note(fmt::format("{} was computed {}; {} of {} tasks are kept, and it will be replaced",
                           path, why, known, tasks()));
}

std::optional<std::vector<TaskResult>> RunningSweep::compute(std::size_t task, const Config& config,
                                                             const std::vector<Measures>& lists,
                                                             const Context& context) const {
  const auto begin = std::chrono::steady_clock::now();
  try {
    auto measured = measure_lists(config, lists, context);
    if (!measured) return std::nullopt;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::vector<TaskResult> out;
    for (Dataset& one : *measured) out.push_back({std::move(one.quantities), seconds});
    return out;
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}: {}", job_.file.path, describe(task), e.what()));
  }
}

void RunningSweep::settle(const TaskResult& result) {
  ++outcome.done;
  outcome.seconds += result.seconds;
  for (const Quantity& q : result.quantities) {
    outcome.diverged += q.name == "diverged" && q.values.front() == 1.0 ? 1 : 0;
  }
}

void RunningSweep::keep(const TaskResult& result) {
  ++outcome.kept;
  settle(result);
}

void RunningSweep::finish() {
  const SweepPlan& plan = job_.file.plan;
  const auto load = [&](std::size_t task) {
    TaskStore::Loaded loaded = store_->load(identity(config_of(task)));
    if (loaded.found == TaskStore::Found::whole) return std::move(loaded.result);
    throw FileError(tasks_folder(), fmt::format("the task {} was changed or removed while "
                                                "this ran; run the sweep again",
                                                plan.describe(task)));
  };
  Provenance provenance{outcome.configuration, job_.command_line, job_.file.base.run.seed};
  if (plan.varies("run.seed")) provenance.seed.reset();
  std::error_code error;
  if (!job_.replace && std::filesystem::exists(job_.output, error) &&
      read_attribute(job_.output, "format") != "headflow-sweep") {
    throw FileError(job_.output,
                    "was written by something else meanwhile; move it away and run the sweep "
                    "again: the tasks are kept");
  }
  write_result(job_.output, sweep_dataset(plan, load, provenance));
  if (job_.keep_tasks) {
    std::vector<Fingerprint> wanted = fingerprints_;
    std::ranges::sort(wanted);
    store_->tidy(program_identity(), wanted, std::max(tasks(), kFewestSpare));
  } else {
    store_->remove();
  }
  store_.reset();
}

}  // namespace headflow
