#include "experiments/sweep_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "core/error.h"

namespace headflow {
namespace {

SweepPlan plan_of(const std::string& text) {
  // Tests run side by side, each in a process of its own.
  const std::string path =
      ::testing::TempDir() + "headflow_sweep_" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << text;
  return read_sweep_plan(path);
}

std::string error_of(const std::string& text) {
  try {
    plan_of(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(SweepPlan, ProductsAndZips) {
  const SweepPlan plan = plan_of(R"(
[sweep]
measure = ["end"]
[[sweep.axis]]
name = "prior"
keys = ["problem.prior", "problem.nu"]
values = [["flipping", 10.0], ["gaussian", [8.0, 2.0]]]
labels = ["discrete", "continuous"]
[[sweep.axis]]
key = "problem.heads"
range = [2, 4]
)");
  ASSERT_EQ(plan.tasks(), 6u);
  EXPECT_EQ(plan.describe(4), "prior continuous, heads 3");
  Session session;
  plan.apply(4, session);
  EXPECT_EQ(session.problem.prior, "gaussian");
  EXPECT_EQ(session.problem.heads, 3);
  EXPECT_EQ(session.problem.prior_parameters.at("nu").size(), 2);
  EXPECT_TRUE(plan.axes[0].numbers.empty());
  EXPECT_EQ(plan.axes[1].numbers, (std::vector<double>{2, 3, 4}));
}

TEST(SweepPlan, Spacings) {
  const SweepPlan plan = plan_of(R"(
[sweep]
measure = ["bayes"]
[[sweep.axis]]
key = "problem.nu"
logspace = [0.1, 100, 4]
[[sweep.axis]]
key = "problem.eta"
linspace = [0, 1, 3]
)");
  EXPECT_NEAR(plan.axes[0].numbers[1], 1.0, 1e-12);
  EXPECT_EQ(plan.axes[0].numbers[3], 100);
  EXPECT_EQ(plan.axes[1].numbers, (std::vector<double>{0, 0.5, 1}));
}

// What is spelled out is the same plan.
TEST(SweepPlan, WritesItself) {
  const SweepPlan plan = plan_of(R"(
[sweep]
measure = ["end", "bayes"]
[[sweep.axis]]
key = "problem.nu"
values = [[2.0, 2.0], [8.0, 2.0]]
[[sweep.axis]]
key = "run.seed"
range = [1, 3]
)");
  const SweepPlan again = plan_of(plan.toml());
  EXPECT_EQ(again.toml(), plan.toml());
  EXPECT_EQ(again.tasks(), plan.tasks());
  EXPECT_EQ(again.describe(5), plan.describe(5));
}

TEST(SweepPlan, SaysWhatIsWrongAndWhere) {
  const std::string head = "[sweep]\nmeasure = [\"end\"]\n[[sweep.axis]]\n";
  EXPECT_NE(error_of(head + "key = \"problem.headz\"\nrange = [1, 2]\n").find("problem.heads"),
            std::string::npos);
  EXPECT_NE(error_of(head + "key = \"problem.heads\"\n").find(":3: an axis needs one of"),
            std::string::npos);
  EXPECT_NE(error_of(head + "key = \"problem.heads\"\nvalue = [1]\n").find("did you mean values"),
            std::string::npos);
  EXPECT_NE(error_of(head + "key = \"problem.nu\"\nlogspace = [0, 1, 3]\n").find("positive"),
            std::string::npos);
  EXPECT_NE(error_of("[sweep]\nmeasure = [\"ends\"]\n").find("no measure"), std::string::npos);
  EXPECT_NE(error_of("[problem]\n").find("no table [sweep]"), std::string::npos);
  const std::string axis = "[[sweep.axis]]\nkey = \"run.seed\"\nrange = [1, 2]\n";
  EXPECT_NE(error_of("[sweep]\nmeasure = [\"end\"]\n" + axis + axis).find("two axes"),
            std::string::npos);
}

}  // namespace
}  // namespace headflow
