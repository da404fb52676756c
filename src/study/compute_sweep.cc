#include "study/compute_sweep.h"

#include <optional>
#include <vector>

#include "study/check_plan.h"
#include "study/sweep_crew.h"
#include "study/sweep_result.h"

namespace headflow {
namespace {

class SweepInMemory final : public RunningSweep {
 public:
  SweepInMemory(SweepTasks checked, TaskKeeper* keeper)
      : RunningSweep(std::move(checked)), keeper_(keeper), results_(tasks().count()) {}

  TaskKeeper* keeper() override { return keeper_; }

  Dataset result() const {
    const auto load = [&](std::size_t task) { return results_[task].value_or(TaskResult{}); };
    Dataset out = sweep_dataset(tasks().plan(), load, tasks().provenance());
    if (complete()) return out;
    out.set("outcome", std::string(to_string(outcome.state())));
    out.set("tasks", static_cast<std::int64_t>(outcome.tasks));
    out.set("done", static_cast<std::int64_t>(outcome.done));
    return out;
  }

 private:
  void take(std::size_t task, const TaskResult& result) override { results_[task] = result; }

  TaskKeeper* keeper_;
  std::vector<std::optional<TaskResult>> results_;
};

}  // namespace

Dataset compute_sweep(const SweepPlan& plan, const Config& base, const Context& context,
                      TaskKeeper* keeper) {
  check_plan(plan, base);
  SweepInMemory sweep(SweepTasks(plan, base, context), keeper);
  run_together({&sweep}, context);
  return sweep.result();
}

}  // namespace headflow
