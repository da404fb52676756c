#include "sweep/known_results.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "study/sweep_tasks.h"
#include "sweep/sweep.h"
#include "verify/figure_tasks.h"

namespace headflow::known_results_test {
namespace {

namespace fs = std::filesystem;

class KnownResultsTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("headflow_known_" + std::to_string(::getpid()));
};

Config two_heads(std::uint64_t seed) {
  Config out;
  out.problem.prior_parameters["nu"] = Matrix::Constant(1, 1, 2.0);
  out.run.tolerance = 1e-3;
  out.run.seed = seed;
  out.end.search = EndSearch::flow;
  out.end.gradient = 1e-2;
  return out;
}

TEST_F(KnownResultsTest, ATaskOfASweepIsTaken) {
  const std::string path = folder / "some.toml";
  std::ofstream(path)
      << "[problem]\nnu = 2\n[run]\ntolerance = 1e-3\n[end]\nsearch = \"flow\"\ngradient = 1e-2\n"
         "[sweep]\nmeasure = [\"end\"]\n"
         "[[sweep.axis]]\nkey = \"run.seed\"\nrange = [1, 2]\n";
  SweepJob job;
  job.file = read_sweep_file(path);
  job.output = folder / "some.nc";
  ASSERT_EQ(run_sweeps({job}, {}).front().done, 2U);

  const KnownResults known(folder);
  const Dataset taken = known_or_measured(&known, two_heads(2), {Measure::end}, {});
  EXPECT_EQ(known.found(), 1);
  const Dataset measured = known_or_measured(nullptr, two_heads(2), {Measure::end}, {});
  EXPECT_EQ(taken.number("loss"), measured.number("loss"));
  EXPECT_EQ(taken["m"].values, measured["m"].values);
  // Neither another start, nor other measures, are the same task.
  EXPECT_FALSE(known.find(two_heads(3), {Measure::end}));
  EXPECT_FALSE(known.find(two_heads(2), {Measure::end, Measure::similarity}));
  EXPECT_EQ(known.found(), 1);
}

TEST_F(KnownResultsTest, ThereMustBeAFolder) {
  EXPECT_THROW(KnownResults("/nowhere/at/all"), FileError);
}

/// The tasks of one of the paper's figures, as they are told apart.
std::set<std::string> tasks_of(const std::string& name) {
  const SweepFile file =
      read_sweep_file(std::string(HEADFLOW_SOURCE) + "/configs/paper/" + name + ".toml");
  EXPECT_TRUE(file.keep_tasks) << name;
  const SweepTasks tasks(file.plan, file.base, {}, name);
  std::set<std::string> out;
  for (std::size_t i = 0; i < tasks.count(); ++i) {
    out.insert(tasks.identity(tasks.config_of(i)).configuration);
  }
  return out;
}

void expect_one_of(const std::set<std::string>& tasks, const Config& config,
                   const Measures& measures) {
  const std::string wanted = task_identity(config, measures).configuration;
  EXPECT_TRUE(tasks.contains(wanted)) << wanted << "is not as\n" << *tasks.begin();
}

// Else verify would compute again, without a word, what the figures have computed.
TEST(FigureTasks, AreTheFigures) {
  const std::set<std::string> pruned = tasks_of("fig07"), staged = tasks_of("fig19");
  for (const char* prior : {"flipping", "gaussian"}) {
    for (const char* activation : {"softmax", "softmax-1"}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        expect_one_of(pruned, pruning_task(setting(activation, prior, 5, 8, 4, {10}), seed),
                      pruning_measures());
      }
    }
  }
  for (const std::uint64_t seed : {1, 2}) {
    expect_one_of(staged, stages_task(setting("softmax", "gaussian", 5, 8, 3, {20, 1}), seed),
                  stages_measures());
  }
}

}  // namespace
}  // namespace headflow::known_results_test
