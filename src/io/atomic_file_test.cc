#include "io/atomic_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public ::testing::Test {
 protected:
  fs::path folder =
      fs::path(::testing::TempDir()) / ("headflow_atomic_" + std::to_string(::getpid()));
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  static std::string content(const fs::path& path) {
    std::stringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
};

TEST_F(AtomicFile, ReplacesTheContent) {
  const fs::path path = folder / "file";
  write_atomically(path, std::string("first"));
  write_atomically(path, std::string("second"));
  EXPECT_EQ(content(path), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "no temporary file is left";
}

TEST_F(AtomicFile, RefusesWhatIsNotAFile) {
  EXPECT_THROW(check_writable(folder), FileError);
  EXPECT_THROW(check_writable(folder / "missing" / "file"), FileError);
  EXPECT_THROW(check_writable("/dev/null"), FileError);
  EXPECT_THROW(write_atomically("/dev/full", std::string("x")), FileError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(AtomicFile, LeftoversAreRemovedAndNothingElse) {
  const auto touch = [&](const std::string& name) {
    std::ofstream((folder / name).string()) << "x";
    return folder / name;
  };
  const auto left = touch("run.nc.a1B2c3"), own = touch("run.nc"),
             other = touch("run.nc.checkpoint"), dotted = touch("run.nc.a.b.cc");
  remove_leftovers((folder / "run.nc").string());
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const auto& kept : {own, other, dotted}) EXPECT_TRUE(std::filesystem::exists(kept));
}

}  // namespace
}  // namespace headflow
