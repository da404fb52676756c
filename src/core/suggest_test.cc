#include "core/suggest.h"

#include <gtest/gtest.h>

namespace headflow::suggest_test {
namespace {

TEST(Suggest, FindsTheClosestName) {
  const std::vector<std::string> names = {"tokens", "heads", "features"};
  EXPECT_EQ(closest(names, "token"), "tokens");
  EXPECT_EQ(closest(names, "haeds"), "heads");
  EXPECT_EQ(closest(names, "colour"), "");
}

TEST(Suggest, ListsTheChoices) {
  EXPECT_EQ(one_of({"softmax", "softmax-1"}, "sofmax"),
            "must be one of \"softmax\", \"softmax-1\" (did you mean \"softmax\"?)");
}

}  // namespace
}  // namespace headflow::suggest_test
