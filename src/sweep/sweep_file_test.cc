#include "sweep/sweep_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "core/error.h"

namespace headflow::sweep_file_test {
namespace {

/// A key as a flag gives it.
GivenFlags flag(const char* name, const char* text) {
  const Key* key = find_key(name);
  return {{key, parse_value(key->kind, text)}};
}

SweepFile file_of(const std::string& text, const GivenFlags& flags = {}) {
  // Tests run side by side, each in a process of its own.
  const std::string path =
      ::testing::TempDir() + "headflow_sweep_" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << text;
  return read_sweep_file(path, flags);
}

SweepPlan plan_of(const std::string& text) { return file_of(text).plan; }

std::string error_of(const std::string& text, const GivenFlags& flags = {}) {
  try {
    file_of(text, flags);
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
  const Config config = plan.config_of(4, {});
  EXPECT_EQ(config.problem.prior, "gaussian");
  EXPECT_EQ(config.problem.heads, 3);
  EXPECT_EQ(config.problem.prior_parameters.at("nu").size(), 2);
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
  EXPECT_EQ(plan.axes[0].numbers, (std::vector<double>{0.1, 1, 10, 100}));  // found by xarray's sel
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
  EXPECT_NE(error_of("[sweep]\nmeasure = [\"ends\"]\n").find("did you mean \"end\""),
            std::string::npos);
  EXPECT_NE(error_of("[problem]\n").find("no table [sweep]"), std::string::npos);
  const std::string axis = "[[sweep.axis]]\nkey = \"run.seed\"\nrange = [1, 2]\n";
  EXPECT_NE(error_of("[sweep]\nmeasure = [\"end\"]\n" + axis + axis).find("two axes"),
            std::string::npos);
}

/// An axis of the measure end.
std::string axis(const std::string& lines, const std::string& measure = "end") {
  return "[sweep]\nmeasure = [\"" + measure + "\"]\n[[sweep.axis]]\n" + lines + "\n";
}

void expect_complaint(const std::string& text, const std::string& part,
                      const GivenFlags& flags = {}) {
  const std::string got = error_of(text, flags);
  EXPECT_NE(got.find(part), std::string::npos) << text << "\nsays: " << got;
}

// One number stands for both strengths, and an axis over one of them leaves the other.
TEST(SweepPlan, AnAxisOfOneStrengthLeavesTheOther) {
  const auto nu_of = [](const std::string& problem, std::size_t task) {
    const SweepFile file = file_of(problem + axis("key = \"problem.nu[1]\"\nvalues = [1.0, 4.0]"));
    const Config config = file.plan.config_of(task, file.base);
    const Matrix nu = config.problem.prior_parameters.at("nu");
    return std::vector<double>(nu.data(), nu.data() + nu.size());
  };
  EXPECT_EQ(nu_of("[problem]\nnu = 2.0\n", 1), (std::vector<double>{4, 2}));
  EXPECT_EQ(nu_of("[problem]\nnu = [2.0, 3.0]\n", 0), (std::vector<double>{1, 3}));
  EXPECT_EQ(nu_of("[problem]\nprior = \"gaussian\"\nfeatures = 1\n", 1), (std::vector<double>{4}));
  try {
    nu_of("", 0);
    FAIL() << "problem.nu[2] is unknown";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("problem.nu[2] is neither"), std::string::npos);
  }
}

TEST(SweepPlan, AnElementOfAMatrixIsNoAxis) {
  const SweepFile file = file_of("[point]\nm = [[1.0, 2.0], [3.0, 4.0]]\n" +
                                 axis("key = \"point.m[1]\"\nvalues = [1.0]"));
  EXPECT_THROW(file.plan.config_of(0, file.base), Error);
}

TEST(SweepPlan, RangesThatCannotBeMeant) {
  const std::string key = "key = \"run.seed\"\n";
  expect_complaint(axis(key + "range = [5, 1]"), "goes upwards");
  expect_complaint(axis(key + "range = [1, inf]"), "finite");
  expect_complaint(axis(key + "range = [nan, 2]"), "finite");
  expect_complaint(axis(key + "range = [0, 1e12]"), "more than 1000000 values");
  expect_complaint(axis(key + "range = [9e15, 9.1e15]"), "more than 1000000 values");
  expect_complaint(axis(key + "linspace = [0, 1, 1e9]"), "from 1 to 1000000");
  expect_complaint(axis(key + "logspace = [1, inf, 3]"), "finite");
  expect_complaint(axis(key + "values = []"), "must not be empty");
  const std::string one = "[[sweep.axis]]\nkey = \"run.seed\"\nrange = [1, 2000]\n";
  expect_complaint(axis("key = \"problem.heads\"\nrange = [1, 2000]") + one,
                   "more than 1000000 tasks");
}

TEST(SweepPlan, KeysThatAreAlmostRight) {
  expect_complaint(axis("key = \"seed\"\nrange = [1, 2]"), "did you mean run.seed?");
  expect_complaint(axis("key = \"init\"\nvalues = [\"law\"]"), "flow.init or sgd.init");
  expect_complaint(axis("key = \"problem.nu[0]\"\nvalues = [1]"), "problem.nu[1]");
  expect_complaint(axis("key = \"problem.tokens[1]\"\nvalues = [1]"), "no list of numbers");
  expect_complaint(axis("key = \"program.threads\"\nvalues = [1]"), "changes nothing");
  expect_complaint(axis("key = 3\nvalues = [1]"), "text in quotes");
  const std::string other =
      "[[sweep.axis]]\nname = \"again\"\nkey = \"run.seed\"\nrange = [1, 2]\n";
  expect_complaint(axis("key = \"run.seed\"\nrange = [1, 2]") + other, "both set run.seed");
}

TEST(SweepPlan, NamesThatAResultCannotHave) {
  const std::string key = "key = \"run.seed\"\nrange = [1, 2]\n";
  for (const char* name :
       {"my axis/1", "", "loss", "attention_head", "head", "mean", "1st", "\\u0000", "nu[2]"}) {
    EXPECT_NE(error_of(axis(key + "name = \"" + name + "\"")), "") << name;
  }
  expect_complaint(axis(key + "name = \"my axis/1\""), "name = \"my_axis_1\"");
  expect_complaint(axis(key + "name = \"" + std::string(300, 'a') + "\""), "100 letters");
  // Names of other measures are free, and the name of a key may need another.
  EXPECT_EQ(error_of(axis(key + "name = \"loss\"", "bayes")), "");
  expect_complaint(axis("key = \"flow.time\"\nvalues = [1.0]", "flow"), "\"time\"");
  EXPECT_EQ(error_of("[end]\nsearch = \"flow\"\n" + axis("key = \"flow.time\"\nvalues = [1.0]")),
            "");
  EXPECT_EQ(plan_of(axis("key = \"problem.nu[2]\"\nvalues = [1.0]")).axes[0].name, "nu2");
}

TEST(SweepPlan, MeasuresThatWouldHideEachOther) {
  expect_complaint("[sweep]\nmeasure = [\"flow\", \"sgd\"]\n", "both give");
  expect_complaint("[sweep]\nmeasure = [\"end\", \"end\"]\n", "named twice");
}

TEST(SweepPlan, AFlagBesideItsAxisIsRefused) {
  const std::string heads = axis("key = \"problem.heads\"\nrange = [1, 2]");
  expect_complaint(heads, "problem.heads = 7 and the axis \"heads\"", flag("problem.heads", "7"));
  EXPECT_EQ(file_of(heads, flag("problem.tokens", "7")).base.problem.tokens, 7);
  const std::string both = axis("key = \"problem.nu[1]\"\nvalues = [1.0]") +
                           "[[sweep.axis]]\nkey = \"problem.nu[2]\"\nvalues = [1.0]\n";
  expect_complaint(both, "problem.nu = 2.0 and the axes", flag("problem.nu", "2"));
  expect_complaint(both, "problem.nu = [2.0, 2.0] and the axis \"nu1\"", flag("problem.nu", "2,2"));
  const std::string second = axis("key = \"problem.nu[2]\"\nvalues = [1.0]");
  expect_complaint(second, "problem.nu = [3.0, 4.0] and the axis \"nu2\"",
                   flag("problem.nu", "3,4"));
  EXPECT_EQ(error_of(second), "");
  EXPECT_NO_THROW(file_of(second, flag("problem.nu", "3")));
}

TEST(SweepPlan, AnAxisOfTauWinsOverStepsOfTheFile) {
  const SweepFile file = file_of(
      "[sgd]\nsteps = 7\n" + axis("key = \"sgd.tau\"\nvalues = [1.0]\nname = \"length\"", "sgd"));
  const Config config = file.plan.config_of(0, file.base);
  EXPECT_EQ(config.sgd.total_steps(), 50);
}

TEST(SweepPlan, WholeNumbersAreWhole) {
  EXPECT_EQ(
      plan_of(axis("key = \"run.seed\"\nvalues = [1, 1e4, 9007199254740993]")).axes[0].integers,
      (std::vector<std::int64_t>{1, 10000, 9007199254740993}));
  EXPECT_TRUE(plan_of(axis("key = \"problem.eta\"\nrange = [1, 2]")).axes[0].integers.empty());
}

TEST(SweepPlan, TheFileIsReadOnce) {
  const SweepFile file =
      file_of("[problem]\ntokens = 6\n" + axis("key = \"run.seed\"\nrange = [1, 2]"));
  file_of("[problem]\ntokens = 60\n[sweep]\nmeasure = [\"bayes\"]\n");  // the same path
  const Config config = file.plan.config_of(1, file.base);
  EXPECT_EQ(config.problem.tokens, 6);
  EXPECT_EQ(config.run.seed, 2u);
  EXPECT_NE(file.text.find("tokens = 6\n"), std::string::npos);
}

TEST(SweepPlan, TheoriesAreAListOrOneText) {
  const std::string rest = axis("key = \"run.seed\"\nrange = [1, 2]", "sgd");
  const std::vector<LimitKind> two = {LimitKind::flow, LimitKind::map};
  EXPECT_EQ(file_of("[compare]\ntheory = \"flow, map\"\n" + rest).base.compare.theory, two);
  EXPECT_EQ(file_of("[compare]\ntheory = [\"flow\", \"map\"]\n" + rest).base.compare.theory, two);
  expect_complaint("[compare]\ntheory = [1, 2]\n" + rest, "names in quotes");
}

}  // namespace
}  // namespace headflow::sweep_file_test
