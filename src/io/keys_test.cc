#include "io/keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "io/session.h"

namespace headflow::keys_test {
namespace {

class KeysTest : public ::testing::Test {
 protected:
  std::string path = ::testing::TempDir() + "headflow_keys_" + std::to_string(::getpid()) + ".toml";
  Session session;

  void TearDown() override { std::filesystem::remove(path); }

  /// What reading this text says, "" if nothing.
  std::string read(const std::string& text) {
    std::ofstream(path) << text;
    try {
      session.keys.read_file(path);
    } catch (const Error& e) {
      const std::string what = e.what();
      return what.substr(what.find(".toml") + 5);
    }
    return "";
  }
};

TEST_F(KeysTest, ReadsAFile) {
  EXPECT_EQ(read("[problem]\ntokens = 7\nnu = [2.0, 1]\neta = 2\nactivation = \"b-softmax\"\n"
                 "points = [[1, 2], [3, 4.5]]\n[run]\nsamples = 1e5\n[flow]\nkappa = 0.5\n"),
            "");
  EXPECT_EQ(session.problem.tokens, 7);
  EXPECT_EQ(session.problem.eta, 2.0);
  EXPECT_EQ(session.problem.activation, "b-softmax");
  EXPECT_EQ(session.problem.prior_parameters["nu"], Matrix((Matrix(1, 2) << 2, 1).finished()));
  EXPECT_EQ(session.problem.prior_parameters["points"](1, 1), 4.5);
  EXPECT_EQ(session.engine.samples, 100000);
  EXPECT_EQ(session.flow.kappa, 0.5);
  EXPECT_EQ(session.keys.origin("problem.tokens"), path + ":2");
}

TEST_F(KeysTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(read("[problem]\ntoken = 7\n"),
            ":2: unknown key \"token\" in [problem] (did you mean \"tokens\"?)");
  EXPECT_EQ(read("\n\n[problm]\ntokens = 7\n"),
            ":3: unknown table \"problm\" (did you mean \"problem\"?)");
  EXPECT_EQ(read("tokens = 7\n"), ":1: unknown key \"tokens\" (it belongs in the table [problem])");
  EXPECT_EQ(read("[problem]\ntokens = \"seven\"\n"),
            ":2: problem.tokens = \"seven\": must be an integer");
  EXPECT_EQ(read("[problem]\ntokens = 2.5\n"), ":2: problem.tokens = 2.5: must be an integer");
  EXPECT_EQ(read("[problem]\nprior = 3\n"), ":2: problem.prior = 3: must be text in quotes");
  EXPECT_EQ(read("[problem]\neta = true\n"), ":2: problem.eta = true: must be a number");
  EXPECT_EQ(read("[problem]\npoints = [[1, 2], [3]]\n"),
            ":2: problem.points = [ [ 1, 2 ], [ 3 ] ]: must be numbers in a list, or rows of equal "
            "length");
  EXPECT_EQ(read("[run]\nseed = -1\n"),
            ":2: run.seed = -1: must be an integer that is not negative");
  EXPECT_EQ(read("[problem]\ntokens = \n").substr(0, 3), ":2:");
}

TEST_F(KeysTest, AnEmptyFileSetsNothing) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("# only a remark"), "");
}

TEST_F(KeysTest, EmptyListsAndNonFiniteNumbers) {
  for (const char* key : {"nu", "p", "points", "covariance", "mean"}) {
    for (const char* bad : {"[]", "[[]]", "[[], []]", "nan", "[1.0, inf]", "[[]"}) {
      EXPECT_NE(read(fmt::format("[problem]\n{} = {}\n", key, bad)), "") << key << bad;
    }
  }
  EXPECT_NE(read("[problem]\nnu = []\n").find("empty list"), std::string::npos);
  for (const Key& key : session.keys.all()) {
    if (key.kind != ValueKind::number) continue;
    for (const char* bad : {"nan", "inf", "-inf"}) {
      EXPECT_NE(read(fmt::format("[{}]\n{} = {}\n", key.section, key.name, bad)), "")
          << key.full_name();
    }
  }
}

// Recursion over the parts of a name took the stack.
TEST_F(KeysTest, DeepNamesAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 50'000; ++i) deep += ".a";
  for (const std::string& text :
       {"[" + deep + "]\n", deep + " = 1\n", "x = {" + deep + " = 1}\n", "[[" + deep + "]]\n"}) {
    EXPECT_NE(read(text).find("parts"), std::string::npos);
  }
  const std::string brackets = "x = " + std::string(50'000, '[') + std::string(50'000, ']') + "\n";
  EXPECT_NE(read(brackets), "");
  // Dots in texts, remarks and numbers are none of names.
  EXPECT_EQ(read("# " + deep + "\n[problem]\nactivation = \"" + deep +
                 "\"\nnu = [1.5, 2.5]\n"
                 "mean = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, "
                 "1.5, 1.6, 1.7, 1.8]\nprior = \"\"\"" +
                 deep + "\n" + deep + "\"\"\"\n"),
            "");
  EXPECT_LT(read("[problem]\n" + std::string(1'000'000, 'x') + " = 1\n").size(), 1000u);
}

TEST_F(KeysTest, FoldersAndEndlessFilesAreRefused) {
  for (const char* bad : {"/", "/dev/zero"}) {
    EXPECT_THROW(session.keys.read_file(bad), FileError) << bad;
  }
}

TEST_F(KeysTest, FlagsAreParsedLikeFiles) {
  for (const Key& key : session.keys.all()) {
    if (key.name == "nu") session.keys.set_text(key, "2,1.5", "--nu");
    if (key.name == "points") session.keys.set_text(key, "1,0;0,-1", "--points");
    if (key.name == "covariance") session.keys.set_text(key, "[[1, 2], [3, 4]]", "--covariance");
    if (key.name == "mean") session.keys.set_text(key, "[5, 6]", "--mean");
    if (key.name == "samples") session.keys.set_text(key, "1e6", "--samples");
    if (key.name == "tokens") {
      EXPECT_THROW(session.keys.set_text(key, "4x", "--tokens"), OptionError);
    }
  }
  EXPECT_EQ(session.problem.prior_parameters["nu"](0, 1), 1.5);
  EXPECT_EQ(session.problem.prior_parameters["points"](1, 1), -1.0);
  EXPECT_EQ(session.problem.prior_parameters["covariance"],
            Matrix((Matrix(2, 2) << 1, 2, 3, 4).finished()));
  EXPECT_EQ(session.problem.prior_parameters["mean"], Matrix((Matrix(1, 2) << 5, 6).finished()));
  EXPECT_EQ(session.engine.samples, 1000000);
}

TEST_F(KeysTest, TheConfigurationReadsBack) {
  ASSERT_EQ(
      read("[problem]\nnu = [2.0, 0.1]\n[flow]\nrtol = 3e-7\n[point]\nm = [[1, 2], [3, 4]]\n"), "");
  const std::string configuration = session.flow_configuration();
  Session again;
  std::ofstream(path) << configuration;
  again.keys.read_file(path);
  EXPECT_EQ(again.flow_configuration(), configuration);
  EXPECT_EQ(again.flow.rtol, 3e-7);
}

// No command has flags of both [flow] and [sgd] or [compare], which share some names.
TEST_F(KeysTest, FlagsAreUnique) {
  for (const std::set<std::string>& others : {std::set<std::string>{"flow"}, {"sgd", "compare"}}) {
    std::set<std::string> flags;
    for (const Key& key : session.keys.all()) {
      if (others.contains(key.section)) continue;
      EXPECT_TRUE(flags.insert(key.flag()).second) << key.flag();
      EXPECT_FALSE(key.help.empty());
    }
  }
}

}  // namespace
}  // namespace headflow::keys_test
