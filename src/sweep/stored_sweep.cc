#include "sweep/stored_sweep.h"

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/netcdf_file.h"
#include "io/recorded_start.h"
#include "io/result_file.h"
#include "study/sweep_result.h"
#include "sweep/what_differs.h"

namespace headflow {
namespace {

constexpr std::size_t kFewestSpare = 1000;  // tasks of other plans that a store may hold

/// netCDF is for one thread at a time.
std::mutex& files() {
  static std::mutex mutex;
  return mutex;
}

void read_start(Config& config) {
  const std::lock_guard<std::mutex> lock(files());
  take_recorded_start(config);
}

/// A start from a file that is the same for all tasks becomes numbers of the configuration.
void take_common_start(SweepFile& file, const Context& context) {
  Config& base = file.base;
  const SweepPlan& plan = file.plan;
  const bool varies = plan.varies("flow.init") || plan.varies("flow.init_from") ||
                      plan.varies("flow.init_run") || plan.varies("flow.init_time");
  if (base.flow.init_from.empty() && !plan.varies("flow.init_from")) return;
  if (plan.sets_point() || plan.varies("problem.p")) {
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
}

SweepTasks tasks_of(SweepFile& file, const Context& context) {
  try {
    take_common_start(file, context);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file.path, e.what()));
  }
  return {file.plan, file.base, context, file.path, read_start};
}

}  // namespace

StoredSweep::StoredSweep(SweepJob job, const Context& context)
    : RunningSweep(tasks_of(job.file, context), job.label), job_(std::move(job)) {
  look_at_output(context);
}

std::string StoredSweep::tasks_folder() const { return link_target(job_.output) + kTasksExtension; }

/// Is there a result already, and may it be replaced?
void StoredSweep::look_at_output(const Context& context) {
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
      what_differs(tasks().base(), tasks().plan(), read_attribute(path, "configuration"));
  const std::string why = other.empty() ? "by another version of the program"
                                        : fmt::format("with another configuration ({})", other);
  if (fs::is_directory(folder, error)) store_.emplace(folder);
  std::size_t known = 0;
  for (const Fingerprint& one : tasks().fingerprints()) {
    known += store_ && store_->has(one) ? 1 : 0;
  }
  if (known == 0) {
    throw Error(
        fmt::format("{}: was computed {}, and none of its tasks is one of these; remove "
                    "it, or choose another result.output",
                    path, why));
  }
  context.note(fmt::format("{} was computed {}; {} of {} tasks are kept, and it will be replaced",
                           path, why, known, tasks().count()));
}

TaskResult StoredSweep::stored(std::size_t task) const {
  TaskStore::Loaded loaded = store_->load(tasks().identity(tasks().config_of(task)));
  if (loaded.found == TaskStore::Found::whole) return std::move(loaded.result);
  throw FileError(tasks_folder(), fmt::format("the task {} was changed or removed while "
                                              "this ran; run the sweep again",
                                              tasks().describe(task)));
}

void StoredSweep::finish() {
  Provenance provenance = tasks().provenance();
  provenance.command = job_.command_line;
  Dataset result = sweep_dataset(
      tasks().plan(), [this](std::size_t task) { return stored(task); }, provenance);
  {
    const std::lock_guard<std::mutex> lock(files());
    std::error_code error;
    if (!job_.replace && std::filesystem::exists(job_.output, error) &&
        read_attribute(job_.output, "format") != "headflow-sweep") {
      throw FileError(job_.output,
                      "was written by something else meanwhile; move it away and run the sweep "
                      "again: the tasks are kept");
    }
    write_result(job_.output, std::move(result));
  }
  if (job_.keep_tasks) {
    std::vector<Fingerprint> wanted = tasks().fingerprints();
    std::ranges::sort(wanted);
    store_->tidy(program_identity(), wanted, std::max(tasks().count(), kFewestSpare));
  } else {
    store_->remove();
  }
  store_.reset();
}

}  // namespace headflow
