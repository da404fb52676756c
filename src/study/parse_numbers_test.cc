#include "study/parse_numbers.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "study/keys.h"

namespace headflow::parse_numbers_test {
namespace {

TEST(ParseNumbers, WholeTextsOnly) {
  EXPECT_EQ(parse_number("2"), 2.0);
  EXPECT_EQ(parse_number("+2.5e-3"), 2.5e-3);
  EXPECT_EQ(parse_number("-.5"), -0.5);
  EXPECT_EQ(parse_number("1."), 1.0);
  EXPECT_EQ(parse_number(" 1 "), 1.0);
  for (const char* text : {"", " ", "2 2", "1e5junk", "0x10", "nan", "inf", "-inf", "1e999", "+-1",
                           "--1", "1_000", "1e", ".", "1.2.3", "1d3", "infinity", "+"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
  EXPECT_EQ(parse_integer("+12"), 12);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", "5-3", "+-5", "1 2", "0x10", "9223372036854775808", "1.0", "+"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
}

TEST(ParseNumbers, Matrices) {
  const Matrix row = (Matrix(1, 2) << 2, -2).finished();
  for (const char* text : {"2,-2", " 2 , -2 ", "[2, -2]", "[[2,-2]]", " [ [ 2 , -2 ] ] "}) {
    EXPECT_EQ(parse_matrix(text), row) << text;
  }
  const Matrix square = (Matrix(2, 2) << 1, 2, 3, 4).finished();
  for (const char* text : {"1,2;3,4", "1, 2; 3, 4", "[[1, 2], [3, 4]]"}) {
    EXPECT_EQ(parse_matrix(text), square) << text;
  }
  for (const char* text : {"",
                           "[]",
                           "[[]]",
                           "2 2",
                           "1,2 3",
                           "1,2,",
                           ",1",
                           "1,,2",
                           "1;",
                           "1,2;3",
                           "[[1,2],[3,4]",
                           "[1,2],[3,4]]",
                           "[[1,2],[3]]",
                           "[[1,2] [3,4]]",
                           "[[1,2],]",
                           "[1,2,]",
                           "[[1],2]",
                           "[1,[2]]",
                           "[[[1]]]",
                           "1,nan",
                           "1;[2]",
                           "[1;2]",
                           "[1",
                           "1]",
                           "1\n2",
                           "[1,2][3,4]"}) {
    EXPECT_FALSE(parse_matrix(text)) << text;
  }
}

/// What setting a key from a flag says, "" if nothing.
std::string said(const char* key, const std::string& text) {
  Config config;
  try {
    find_key(key)->set(config, parse_value(find_key(key)->kind, text));
  } catch (const OptionError& e) {
    return e.what();
  }
  return "";
}

// A space between digits was deleted once: nu = 22 instead of an error.
TEST(ParseNumbers, FlagsSayWhatTheyExpect) {
  const std::string message = said("problem.nu", "2 2");
  EXPECT_NE(message.find("separated by commas"), std::string::npos) << message;
  EXPECT_EQ(said("problem.nu", "2,2"), "");
  EXPECT_EQ(said("problem.tokens", "5-3"), "problem.tokens = \"5-3\": must be an integer");
  EXPECT_EQ(said("run.samples", "1e6"), "");
  EXPECT_NE(said("run.samples", "1e6x"), "");
  EXPECT_NE(said("problem.eta", "nan"), "");
}

}  // namespace
}  // namespace headflow::parse_numbers_test
