#include "study/keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "io/toml_config.h"

namespace headflow::keys_test {
namespace {

class KeysTest : public ::testing::Test {
 protected:
  std::string path = ::testing::TempDir() + "headflow_keys_" + std::to_string(::getpid()) + ".toml";
  Config config;
  Origins origins;

  void TearDown() override { std::filesystem::remove(path); }

  /// What reading this text says, "" if nothing.
  std::string read(const std::string& text) {
    std::ofstream(path) << text;
    try {
      read_config(path, {}, config, origins);
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
  EXPECT_EQ(config.problem.tokens, 7);
  EXPECT_EQ(config.problem.eta, 2.0);
  EXPECT_EQ(config.problem.activation, "b-softmax");
  EXPECT_EQ(config.problem.prior_parameters["nu"], Matrix((Matrix(1, 2) << 2, 1).finished()));
  EXPECT_EQ(config.problem.prior_parameters["points"](1, 1), 4.5);
  EXPECT_EQ(config.run.samples, 100000);
  EXPECT_EQ(config.flow.kappa, 0.5);
  EXPECT_EQ(origins.of("problem.tokens"), path + ":2");
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
  for (const Key& key : keys()) {
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
    EXPECT_THROW(read_config(bad, {}, config, origins), FileError) << bad;
  }
}

TEST_F(KeysTest, FlagsAreParsedLikeFiles) {
  for (const Key& key : keys()) {
    if (key.name == "nu") key.set(config, parse_value(key.kind, "2,1.5"));
    if (key.name == "points") key.set(config, parse_value(key.kind, "1,0;0,-1"));
    if (key.name == "covariance") key.set(config, parse_value(key.kind, "[[1, 2], [3, 4]]"));
    if (key.name == "mean") key.set(config, parse_value(key.kind, "[5, 6]"));
    if (key.name == "samples") key.set(config, parse_value(key.kind, "1e6"));
    if (key.name == "tokens") {
      EXPECT_THROW(key.set(config, parse_value(key.kind, "4x")), OptionError);
    }
  }
  EXPECT_EQ(config.problem.prior_parameters["nu"](0, 1), 1.5);
  EXPECT_EQ(config.problem.prior_parameters["points"](1, 1), -1.0);
  EXPECT_EQ(config.problem.prior_parameters["covariance"],
            Matrix((Matrix(2, 2) << 1, 2, 3, 4).finished()));
  EXPECT_EQ(config.problem.prior_parameters["mean"], Matrix((Matrix(1, 2) << 5, 6).finished()));
  EXPECT_EQ(config.run.samples, 1000000);
}

TEST_F(KeysTest, TheConfigurationReadsBack) {
  const std::string whole =
      "[problem]\nnu = [2.0, 0.1]\ntrain = [\"m\", \"b\"]\n[flow]\nrtol = 3e-7\n"
      "init_b = [1.5, -2.0]\n[point]\nm = [[1, 2], [3, 4]]\n[compare]\n"
      "theory = [\"flow\", \"first-order\"]\n";
  ASSERT_EQ(read(whole), "");
  const std::string text = config_text(config, sections());
  std::ofstream(path) << text;
  Config again;
  read_config(path, {}, again, origins);
  EXPECT_EQ(config_text(again, sections()), text);
  EXPECT_EQ(again.flow.rtol, 3e-7);
  EXPECT_EQ(again.problem.train, (Names{"m", "b"}));
  EXPECT_EQ(again.flow.init_blocks.at("b")(0, 1), -2.0);
  EXPECT_EQ(again.compare.theory, (std::vector{LimitKind::flow, LimitKind::first_order}));
}

// Every key can be read and set: what it gives is taken back, and nothing else changes.
TEST_F(KeysTest, EveryKeyTakesBackWhatItGives) {
  const std::string before = config_text(config, sections());
  for (const Key& key : keys()) {
    EXPECT_FALSE(key.help.empty()) << key.full_name();
    const auto value = key.get(config);
    if (!value) continue;
    key.set(config, *value);
    EXPECT_EQ(config_text(config, sections()), before) << key.full_name();
    for (const std::string& choice : key.choices) {
      Config other;
      key.set(other, key.kind == ValueKind::names ? Value(Names{choice}) : Value(choice));
      EXPECT_NE(value_text(*key.get(other)).find(choice), std::string::npos) << key.full_name();
    }
    if (!key.choices.empty() && key.section != "problem") {
      EXPECT_THROW(key.set(config, std::string("nonsense")), OptionError) << key.full_name();
    }
  }
}

// Long flags are unambiguous everywhere.
TEST_F(KeysTest, FlagsAreUnique) {
  std::set<std::string> flags;
  for (const Key& key : keys()) EXPECT_TRUE(flags.insert(key.flag()).second) << key.flag();
  EXPECT_EQ(find_key("sgd.first_run")->flag(), "--sgd.first-run");
  EXPECT_EQ(find_key("sgd.first_run")->short_flag(), "--first-run");
}

}  // namespace
}  // namespace headflow::keys_test
