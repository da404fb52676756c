// Damaged checkpoints and result files are noticed: every byte counts.

#include "io/checkpoint_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "io/recorded_point.h"
#include "io/result_file.h"
#include "study/compute.h"
#include "support/effort.h"
#include "support/problems.h"

namespace headflow::checkpoint_test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void spill(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class CheckpointTest : public ::testing::Test {
 protected:
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("headflow_checkpoint_" + std::to_string(::getpid()));
  const std::string result = (folder / "run.nc").string();
  const std::string path = checkpoint_path(result), previous = previous_checkpoint_path(result);
  const Problem problem{testing::problem_options("softmax-1", "flipping", 3, 2, 2)};
  SgdOptions options;
  std::vector<SgdCheckpoint> states;  ///< after one output and after two

  void SetUp() override {
    fs::create_directories(folder);
    options.dim = 30;
    options.batch = 10;
    options.lr = 0.1;
    options.steps = 4;
    options.outputs = 2;
    options.runs = 2;
    Sgd sgd(problem, options, 1, Sgd::starts(problem, options, 1));
    for (int i = 0; i < 2; ++i) {
      sgd.advance();
      states.push_back(sgd.checkpoint());
    }
  }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(CheckpointTest, ComesBackAsItWas) {
  write_checkpoint(result, states[0], "a = 1\n");
  const FoundCheckpoint found = read_checkpoint(result, "a = 1\n");
  EXPECT_EQ(found.trouble, "");
  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->saved, states[0].saved);
  EXPECT_EQ(found.checkpoint->step, states[0].step);
  EXPECT_EQ(found.checkpoint->recorded[1][0].state.U, states[0].recorded[1][0].state.U);
  EXPECT_THROW(read_checkpoint(result, "a = 2\n"), FileError);
  discard_checkpoints(result);
  EXPECT_FALSE(read_checkpoint(result, "a = 2\n").checkpoint);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(CheckpointTest, EveryChangedByteIsNoticed) {
  write_checkpoint(result, states[0], "a = 1\n");
  write_checkpoint(result, states[1], "a = 1\n");
  const std::string good = slurp(path);
  ASSERT_EQ(read_checkpoint(result, "a = 1\n").checkpoint->step, states[1].step);
  const auto damaged = [&](const std::string& content) {
    spill(path, content);
    const FoundCheckpoint found = read_checkpoint(result, "a = 1\n");
    EXPECT_NE(found.trouble.find("is damaged"), std::string::npos);
    ASSERT_TRUE(found.checkpoint);  // the one before
    EXPECT_EQ(found.checkpoint->saved, states[0].saved);
  };
  const std::size_t flips = testing::by_effort<std::size_t>(60, 100, 300);
  for (std::size_t i = 0; i < flips; ++i) {
    std::string content = good;
    char& byte = content[i < 30 ? 2 * i : i * good.size() / flips];
    byte = static_cast<char>(byte ^ (1 << i % 8));
    damaged(content);
  }
  for (const std::size_t length : {0u, 1u, 30u, 57u, 1000u}) damaged(good.substr(0, length));
  damaged(good.substr(0, good.size() - 1));
  damaged(good + "x");
  // Without one before it, the run starts at the beginning.
  fs::remove(previous);
  spill(path, good.substr(0, good.size() / 2));
  const FoundCheckpoint found = read_checkpoint(result, "a = 1\n");
  EXPECT_FALSE(found.checkpoint);
  EXPECT_NE(found.trouble.find("starting at the beginning"), std::string::npos);
  // And what does not even say that it is a checkpoint may be anything.
  spill(path, "X" + good.substr(1));
  EXPECT_THROW(read_checkpoint(result, "a = 1\n"), FileError);
}

TEST_F(CheckpointTest, FilesOfTheUserAreNotTouched) {
  for (const char* name :
       {"run.nc.checkpoint.backup", "run.nc.checkpoint.previous", "run.nc.backup"}) {
    spill((folder / name).string(), "mine");
  }
  write_checkpoint(result, states[0], "");
  write_checkpoint(result, states[1], "");
  EXPECT_EQ(read_checkpoint(result, "").checkpoint->step, states[1].step);
  discard_checkpoints(result);
  EXPECT_FALSE(fs::exists(path));
  for (const char* name :
       {"run.nc.checkpoint.backup", "run.nc.checkpoint.previous", "run.nc.backup"}) {
    EXPECT_EQ(slurp((folder / name).string()), "mine") << name;
  }
  spill(path, "mine");
  EXPECT_THROW(write_checkpoint(result, states[0], ""), FileError);
  EXPECT_THROW(read_checkpoint(result, ""), FileError);
  discard_checkpoints(result);
  EXPECT_EQ(slurp(path), "mine");
}

// Bytes of a result file that carry no values may change; those that do are noticed.
TEST_F(CheckpointTest, ADamagedStartIsRefused) {
  SgdRuns runs;
  runs.recorded = states[1].recorded;
  runs.output_steps = options.output_steps();
  runs.output_steps.resize(runs.recorded.front().size());
  write_result(result, sgd_dataset(problem, options, runs));
  const std::vector<BlockInfo> blocks = problem.activation().blocks();
  const RecordedPoint good = read_recorded_point(result, blocks, 2);
  EXPECT_TRUE(good.verified);
  const std::string content = slurp(result);
  int noticed = 0;
  const std::size_t flips = testing::by_effort<std::size_t>(40, 100, 300);
  for (std::size_t i = 0; i < flips; ++i) {
    std::string changed = content;
    char& byte = changed[i * content.size() / flips];
    byte = static_cast<char>(byte ^ (1 << i % 8));
    spill(result, changed);
    try {
      const RecordedPoint got = read_recorded_point(result, blocks, 2);
      EXPECT_EQ(got.m, good.m) << i;
      EXPECT_EQ(got.R, good.R) << i;
      EXPECT_EQ(got.p, good.p) << i;
    } catch (const Error&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 5);
}

}  // namespace
}  // namespace headflow::checkpoint_test
