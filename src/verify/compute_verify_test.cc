#include "verify/compute_verify.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace headflow::compute_verify_test {
namespace {

Config of(const std::vector<std::string>& only) {
  Config config;
  config.verify.effort = Effort::quick;
  config.verify.only = only;
  return config;
}

TEST(ComputeVerify, MeasuresWhatIsNamed) {
  const Dataset found = compute_verify(of({"Remark 2", "Erratum 6"}));
  EXPECT_EQ(found["measured"].values.size(), 3u);
  EXPECT_EQ(found["id"].texts, (std::vector<std::string>{"Remark 2", "Remark 2", "Erratum 6"}));
  EXPECT_EQ(found.count("not_as_expected"), 0);
  EXPECT_EQ(found.text("outcome"), "finished");
  EXPECT_EQ(found.text("effort"), "quick");
  EXPECT_EQ(found.provenance.configuration,
            "[verify]\neffort = \"quick\"\nonly = [\"Remark 2\", \"Erratum 6\"]\n");
}

TEST(ComputeVerify, SaysThatItWasStopped) {
  const Dataset found = compute_verify(of({"Remark 2"}), Context::until([] { return true; }));
  EXPECT_EQ(found["measured"].values.size(), 0u);
  EXPECT_EQ(found.text("outcome"), "interrupted");
}

TEST(ComputeVerify, NamesMustBeOfStatements) {
  for (const std::vector<std::string>& only :
       {std::vector<std::string>{}, std::vector<std::string>{"V.1"}}) {
    try {
      compute_verify(of(only));
      ADD_FAILURE();
    } catch (const OptionError& error) {
      EXPECT_EQ(error.key(), "verify.only");
    }
  }
}

}  // namespace
}  // namespace headflow::compute_verify_test
