#include "sweep/sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/context.h"
#include "io/netcdf_file.h"
#include "study/compute_sweep.h"
#include "study/variables.h"

namespace headflow::sweep_test {
namespace {

namespace fs = std::filesystem;

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  SweepJob job(const std::string& name, const std::string& text) const {
    const std::string path = folder / (name + ".toml");
    std::ofstream(path) << text;
    SweepJob out;
    out.file = read_sweep_file(path);
    out.output = folder / (name + ".nc");
    return out;
  }
  std::string checksum(const std::string& name) const {
    return read_attribute(folder / (name + ".nc"), "checksum");
  }

  const fs::path folder =
      fs::path(::testing::TempDir()) / ("headflow_sweeps_" + std::to_string(::getpid()));
};

std::string ends(const char* measures, const char* heads) {
  return std::string("[problem]\nnu = 2.0\n[run]\ntolerance = 1e-3\n[end]\nsearch = \"flow\"\n") +
         "gradient = 1e-2\n[sweep]\nmeasure = " + measures +
         "\n[[sweep.axis]]\nkey = \"problem.heads\"\nrange = " + heads + "\n";
}

// Figures 5 and 7 look at the same trained networks.
TEST_F(SweepTest, TrainingIsSharedByMeasures) {
  const std::string losses = ends(R"(["end", "bayes"])", "[1, 3]");
  const std::string pruned = ends(R"(["end", "pruning"])", "[3, 3]");
  const auto outcomes = run_sweeps({job("losses", losses), job("pruned", pruned)}, {});
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].done, 3U);
  EXPECT_EQ(outcomes[0].shared, 0U);
  EXPECT_EQ(outcomes[1].done, 1U);
  EXPECT_EQ(outcomes[1].shared, 1U);

  // Each has the numbers that it has alone: names, shapes and bits of all variables.
  run_sweeps({job("losses_alone", losses)}, {});
  run_sweeps({job("pruned_alone", pruned)}, {});
  EXPECT_EQ(checksum("losses"), checksum("losses_alone"));
  EXPECT_EQ(checksum("pruned"), checksum("pruned_alone"));
  EXPECT_NE(checksum("pruned"), checksum("losses"));
  EXPECT_FALSE(checksum("pruned").empty());
}

// In memory and on disk: the same variables, and the same configuration.
TEST_F(SweepTest, IsWhatIsComputedInMemory) {
  const SweepJob on_disk = job("disk", ends(R"(["end", "pruning", "bayes"])", "[1, 3]"));
  run_sweeps({on_disk}, {});
  const NamedVariables all = variables_of(compute_sweep(on_disk.file.plan, on_disk.file.base));
  for (const auto& [name, value] : all.attributes) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text || name == "date") continue;
    EXPECT_EQ(read_attribute(folder / "disk.nc", name), *text) << name;
  }
  EXPECT_EQ(all.attributes.back().first, "checksum");
}

}  // namespace
}  // namespace headflow::sweep_test
