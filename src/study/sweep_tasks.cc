#include "study/sweep_tasks.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "study/keys.h"
#include "study/measures.h"
#include "study/settings.h"

namespace headflow {
namespace {

constexpr std::size_t kBlock = 2048;  // of tasks that are checked one after the other
constexpr double kMostNumbers = 1e8;  // of a result: it is put together in memory

}  // namespace

void no_start_to_read(Config& config) {
  check_start_was_read(config);
  config.flow.init_noise = config.flow.noise();
}

SweepTasks::SweepTasks(SweepPlan plan, Config base, const Context& context, std::string name,
                       StartReader read_start)
    : plan_(std::move(plan)),
      base_(std::move(base)),
      name_(std::move(name)),
      read_start_(std::move(read_start)) {
  if (count() > 100 * kBlock) {
    context.note(fmt::format("{} tasks are checked before the first one runs", count()));
  }
  check(context);
  static_cast<void>(noted_problem(config_of(0).problem, context));
}

std::string SweepTasks::about(std::size_t task) const {
  return (name_.empty() ? "" : name_ + ": ") + (plan_.axes.empty() ? "" : describe(task) + ": ");
}

Config SweepTasks::config_of(std::size_t task) const {
  Config config = plan_.config_of(task, base_);
  if (plan_.varies("flow.init") && config.flow.init != FlowInit::file) {  // it starts elsewhere
    config.flow.init_from.clear();
    config.flow.init_run = 1;
    config.flow.init_time = Moment::first;
  }
  read_start_(config);
  return config;
}

std::string SweepTasks::configuration() const {
  return config_text(base_, swept_sections(), plan_.replaced_keys()) + "\n" + plan_.toml();
}

Provenance SweepTasks::provenance() const {
  Provenance out{configuration(), "", base_.run.seed};
  if (plan_.varies("run.seed")) out.seed.reset();
  return out;
}

/// A wrong value is found before hours are spent on the others.
void SweepTasks::check(const Context& context) {
  fingerprints_.resize(count());
  const bool point_is_set = plan_.sets_point();
  const std::size_t blocks = (count() + kBlock - 1) / kBlock;
  std::vector<std::string> wrong(blocks);
  std::vector<double> numbers(blocks, 0.0);
  context.executor->run(blocks, [&](std::size_t block, int) {
    if (!context.goes_on()) throw Interrupted();
    const std::size_t end = std::min(count(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      try {
        const Config config = config_of(i);
        check_task(config, plan_.measures, point_is_set);
        fingerprints_[i] = identity(config).fingerprint();
        numbers[block] = std::max(numbers[block], numbers_of(config, plan_.measures));
      } catch (const Error& e) {
        wrong[block] = about(i) + e.what();
        return;
      }
    }
  });
  for (const std::string& what : wrong) {
    if (!what.empty()) throw Error(what);
  }
  const double all = *std::ranges::max_element(numbers) * static_cast<double>(count());
  if (all > kMostNumbers) {
    throw Error(fmt::format(
        "{}the result would have {:.2g} numbers, and at most {:.0e} fit: take fewer tasks, or "
        "fewer output times (flow.outputs, sgd.outputs)",
        name_.empty() ? "" : name_ + ": ", all, kMostNumbers));
  }
}

std::optional<std::vector<TaskResult>> SweepTasks::compute(std::size_t task, const Config& config,
                                                           const std::vector<Measures>& lists,
                                                           const Context& context) const {
  const Stopwatch watch;
  try {
    auto measured = measure_lists(config, lists, context);
    if (!measured) return std::nullopt;
    const double seconds = watch.seconds();
    std::vector<TaskResult> out;
    for (Dataset& one : *measured) out.push_back({std::move(one.quantities), seconds});
    return out;
  } catch (const Error& e) {
    throw Error(about(task) + e.what());
  }
}

}  // namespace headflow
