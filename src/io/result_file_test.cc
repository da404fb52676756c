// Results as files and as JSON.

#include "io/result_file.h"

#include <gtest/gtest.h>
#include <netcdf.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/netcdf_file.h"
#include "io/result_json.h"
#include "study/result_header.h"
#include "study/variables.h"

namespace headflow::result_file_test {
namespace {

Dataset example() {
  Dataset d{"headflow-test", "a test", {}, {}, {"a = 1\n", "headflow test", 7}};
  d.add("m", "overlaps", {{"end", 2}, {"feature", 3}}, {1, 2, 3, 4, 5, std::nan("")})
      .with_errors({.1, .2, .3, .4, .5, .6}, ErrorKind::replicas);
  d.add("index", "index", {{"end", 2}}, {3, std::nan("")}).whole_numbers();
  d.add_texts("kind", "kind", {{"end", 2}}, {"minimum", "saddle"});
  d.add_integers("seed_used", "seed", {{"end", 2}}, {9007199254740993, 2});
  d.add("norm", "norm", 2.5).error_name = "off";
  d.quantities.back().errors = {0.25};
  d.add("nothing", "no entries", {{"none", 0}}, {});
  d.set("converged", true);
  d.set("steps", std::int64_t{12});
  d.set("seconds", 0.5);
  d.set("engine", std::string("qmc"));
  return d;
}

class ResultFileTest : public ::testing::Test {
 protected:
  const std::string path = ::testing::TempDir() + "headflow_result_" + std::to_string(::getpid());
  void TearDown() override { std::filesystem::remove(path); }
};

TEST_F(ResultFileTest, HoldsEveryQuantityWithItsErrors) {
  write_result(path, example());
  const NetcdfReader file(path);
  EXPECT_TRUE(file.verify());
  const auto m = file.values("m", {"end", "feature"});
  EXPECT_EQ(std::vector<double>(m.begin(), m.begin() + 5), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(std::isnan(m[5]));
  EXPECT_EQ(file.values("m_error", {"end", "feature"})[3], .4);
  EXPECT_EQ(file.values("index", {"end"})[0], 3);
  EXPECT_EQ(file.values("feature", {"feature"}), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(file.values("norm", {})[0], 2.5);
  EXPECT_EQ(file.values("off", {})[0], 0.25);
  EXPECT_FALSE(file.has("nothing"));
  EXPECT_EQ(file.text("engine"), "qmc");
  EXPECT_EQ(file.text("configuration"), "a = 1\n");
  EXPECT_EQ(file.number("steps"), 12);
  EXPECT_EQ(file.number("converged"), 1);
  EXPECT_EQ(file.number("seed"), 7);
  EXPECT_EQ(file.number("format_version"), kResultFormatVersion);
}

// What has no file has the same checksum, and netCDF's own number for what is unknown.
TEST_F(ResultFileTest, IsWhatIsInMemory) {
  write_result(path, example());
  const NamedVariables all = variables_of(example());
  EXPECT_EQ(read_attribute(path, "checksum"), std::get<std::string>(all.attributes.back().second));
  EXPECT_EQ(kUnknownInteger, NC_FILL_INT64);
  EXPECT_EQ(NetcdfReader(path).values("index", {"end"})[1], static_cast<double>(kUnknownInteger));
}

TEST_F(ResultFileTest, ADimensionHasOneSize) {
  Dataset d = example();
  d.add("q", "overlaps", {{"feature", 2}}, {1, 2});
  EXPECT_THROW(write_result(path, d), Error);
}

TEST(ResultJson, HasTheSameNamesAndTables) {
  Dataset d = example();
  d.tables = {{"end", "ends"}};
  const auto json = nlohmann::json::parse(json_text(d));
  ASSERT_EQ(json["ends"].size(), 2u);
  EXPECT_EQ(json["ends"][0]["m"], (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(json["ends"][1]["m"][2].is_null());
  EXPECT_EQ(json["ends"][1]["m_error"][0], .4);
  EXPECT_EQ(json["ends"][0]["index"], 3);
  EXPECT_TRUE(json["ends"][1]["index"].is_null());
  EXPECT_EQ(json["ends"][1]["kind"], "saddle");
  EXPECT_EQ(json["ends"][0]["seed_used"], 9007199254740993);
  EXPECT_EQ(json["norm"], 2.5);
  EXPECT_EQ(json["off"], 0.25);
  EXPECT_EQ(json["error_kinds"]["m_error"], "standard error");
  EXPECT_EQ(json["converged"], true);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["nothing"].size(), 0u);
  for (const char* key : {"program_version", "program_commit", "date", "configuration_hash"}) {
    EXPECT_FALSE(json["provenance"][key].get<std::string>().empty()) << key;
  }
  d.set("file", std::string("\xff\xfe"));  // no UTF-8
  EXPECT_TRUE(nlohmann::json::parse(json_text(d))["file"].is_string());
}

}  // namespace
}  // namespace headflow::result_file_test
