#include "study/compute_sweep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>

#include "core/error.h"
#include "study/check_plan.h"
#include "study/sweep_tasks.h"
#include "study/variables.h"

namespace headflow::compute_sweep_test {
namespace {

/// Milliseconds a task.
Config quick() {
  Config out;
  out.problem.prior_parameters["nu"] = Matrix::Constant(1, 1, 2.0);
  out.run.tolerance = 1e-3;
  out.end.search = EndSearch::flow;
  out.end.gradient = 1e-2;
  return out;
}

SweepPlan ends() {
  return {{Measure::end, Measure::bayes},
          {make_axis("problem.heads", {1, 2, 3}), make_axis("run.seed", {1, 2})}};
}

/// Of names, shapes and bits of all variables.
GlobalAttribute checksum(const Dataset& result) {
  return variables_of(result).attributes.back().second;
}

class InMemory final : public TaskKeeper {
 public:
  Loaded load(const TaskIdentity& task) const override {
    const auto it = tasks_.find(task.fingerprint());
    return it == tasks_.end() ? Loaded{} : Loaded{Found::whole, it->second};
  }
  void save(const TaskIdentity& task, const TaskResult& result) override {
    tasks_[task.fingerprint()] = result;
    ++saved;
  }
  std::atomic<int> saved = 0;

 private:
  std::map<Fingerprint, TaskResult> tasks_;
};

class Notes final : public Observer {
 public:
  void note(std::string_view text) override { all += std::string(text) + "\n"; }
  std::string all;
};

TEST(ComputeSweep, GivesWhatItsTasksGive) {
  const SweepPlan plan = ends();
  const Dataset all = compute_sweep(plan, quick());
  EXPECT_EQ(all.format, "headflow-sweep");
  EXPECT_EQ(all["heads"].integers, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(all["m"].dimensions,
            (Dimensions{{"heads", 3}, {"seed", 2}, {"attention_head", 3}, {"feature", 2}}));
  EXPECT_EQ(all.attribute("outcome"), nullptr);
  EXPECT_FALSE(all.provenance.seed);
  EXPECT_NE(all.provenance.configuration.find("name = \"heads\""), std::string::npos);
  for (std::size_t task = 0; task < plan.tasks(); ++task) {
    const auto one = measure_task(plan.config_of(task, quick()), plan.measures, {});
    EXPECT_EQ(all["loss"].values[task], one->number("loss"));
    EXPECT_EQ(all["loss"].errors[task], one->error("loss"));
    EXPECT_EQ(all["m"].values[task * 6], (*one)["m"].values[0]);
    // Heads that a task has not.
    EXPECT_EQ(std::isnan(all["m"].values[task * 6 + 5]), task < 4);
  }
}

TEST(ComputeSweep, GivesTheSameBitsForAnyNumberOfThreads) {
  const Dataset one = compute_sweep(ends(), quick(), Context::threads(1));
  const Dataset two = compute_sweep(ends(), quick(), Context::threads(2));
  EXPECT_EQ(checksum(one), checksum(two));
}

TEST(ComputeSweep, IsStoppedAndGoesOn) {
  InMemory keeper;
  const Context two_tasks = Context::until([&] { return keeper.saved >= 2; });
  const Dataset part = compute_sweep(ends(), quick(), two_tasks, &keeper);
  EXPECT_EQ(part.text("outcome"), "interrupted");
  EXPECT_EQ(part.count("tasks"), 6);
  EXPECT_EQ(part.count("done"), 2);
  const Dataset whole = compute_sweep(ends(), quick());
  int known = 0;
  for (std::size_t task = 0; task < 6; ++task) {
    const double loss = part["loss"].values[task];
    if (std::isnan(loss)) continue;
    EXPECT_EQ(loss, whole["loss"].values[task]);
    ++known;
  }
  EXPECT_EQ(known, 2);

  const Dataset rest = compute_sweep(ends(), quick(), {}, &keeper);
  EXPECT_EQ(keeper.saved, 6);
  EXPECT_EQ(rest.attribute("outcome"), nullptr);
  EXPECT_EQ(checksum(rest), checksum(whole));
  EXPECT_EQ(rest.provenance.configuration, whole.provenance.configuration);
  compute_sweep(ends(), quick(), {}, &keeper);
  EXPECT_EQ(keeper.saved, 6);
  // What it kept is also known to whoever needs a task alone.
  const auto task = keeper.find(ends().config_of(3, quick()), ends().measures);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->number("loss"), whole["loss"].values[3]);

  EXPECT_THROW(compute_sweep(ends(), quick(), Context::until([] { return true; })), Interrupted);
}

TEST(ComputeSweep, ComputesATaskOnce) {
  InMemory keeper;
  const SweepPlan plan{{Measure::bayes}, {make_axis({}, {"run.seed"}, {{1}, {1}}, {"a", "b"})}};
  const Dataset out = compute_sweep(plan, quick(), {}, &keeper);
  EXPECT_EQ(keeper.saved, 1);
  EXPECT_EQ(out["bayes"].values[0], out["bayes"].values[1]);
  EXPECT_EQ(out["seed"].texts, (std::vector<std::string>{"a", "b"}));
}

TEST(ComputeSweep, DamagedTasksAreComputedAgainAndNamed) {
  class Damaged final : public TaskKeeper {
   public:
    Loaded load(const TaskIdentity& /*task*/) const override {
      return {Found::damaged, {}, "entry 7 is damaged"};
    }
    void save(const TaskIdentity& /*task*/, const TaskResult& /*result*/) override { ++saved; }
    int saved = 0;
  } keeper;
  const auto notes = std::make_shared<Notes>();
  const SweepPlan plan{{Measure::bayes}, {make_axis("problem.tokens", {3, 4})}};
  const Dataset out = compute_sweep(plan, quick(), {serial_executor(), notes}, &keeper);
  EXPECT_EQ(keeper.saved, 2);
  EXPECT_EQ(checksum(out), checksum(compute_sweep(plan, quick())));
  EXPECT_NE(notes->all.find("entry 7 is damaged; the task (tokens 4) is computed again"),
            std::string::npos)
      << notes->all;
}

std::string complaint(const SweepPlan& plan, const Config& base) {
  try {
    compute_sweep(plan, base);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ComputeSweep, SaysWhatIsWrongBeforeAnythingIsComputed) {
  const SweepPlan tokens{{Measure::bayes}, {make_axis("problem.tokens", {3, 0})}};
  EXPECT_TRUE(complaint(tokens, quick()).starts_with("tokens 0: problem.tokens = 0: "))
      << complaint(tokens, quick());
  Config config = quick();
  config.flow.init_from = "start.nc";
  const SweepPlan flows{{Measure::flow}, {make_axis("run.seed", {1, 2})}};
  EXPECT_TRUE(complaint(flows, config).starts_with("seed 1: flow.init_from = \"start.nc\": is st"))
      << complaint(flows, config);
  SweepPlan points{{Measure::bayes}, {make_axis("run.seed", {1, 2})}};
  points.point_is_given = true;
  EXPECT_NE(complaint(points, quick()).find("[point] is set, but nothing starts there"),
            std::string::npos);
  EXPECT_NE(complaint({{Measure::bayes}, {make_axis("flow.time", {1.0})}}, quick()).find("nothing"),
            std::string::npos);
}

TEST(ComputeSweep, ATaskThatFailsIsNamed) {
  const SweepPlan plan = ends();
  const SweepTasks tasks(plan, quick(), {}, "mine");
  Config wrong = tasks.config_of(3);
  wrong.problem.tokens = 0;
  try {
    tasks.compute(3, wrong, {plan.measures}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("mine: heads 2, seed 2: problem.tokens = 0"))
        << e.what();
  }
}

}  // namespace
}  // namespace headflow::compute_sweep_test
