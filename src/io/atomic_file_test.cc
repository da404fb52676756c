#include "io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace headflow::atomic_file_test {
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

TEST_F(AtomicFile, SymbolicLinksAreFollowed) {
  const fs::path target = folder / "target", link = folder / "link", second = folder / "second";
  fs::create_symlink("target", link);  // leads to a file that is not there yet
  fs::create_symlink(link, second);
  for (const char* text : {"first", "second"}) {
    check_writable(second);
    write_atomically(second, std::string(text));
    EXPECT_EQ(content(target), text);
    EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(second));
  }
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THROW(check_writable(folder / "loop"), FileError);
  fs::create_symlink("/dev/null", folder / "null");
  EXPECT_THROW(write_atomically(folder / "null", std::string("x")), FileError);
  EXPECT_TRUE(fs::is_symlink(folder / "null"));
}

TEST_F(AtomicFile, PipesAreRefused) {
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(check_writable(pipe), FileError);
  EXPECT_THROW(write_atomically(pipe, std::string("x")), FileError);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// A name that a file can have must do, and one that is too long must be refused before the work.
TEST_F(AtomicFile, LongNames) {
  const fs::path longest = folder / std::string(255, 'x'),
                 too_long = folder / std::string(256, 'x');
  check_writable(longest);
  write_atomically(longest, std::string("x"));
  EXPECT_EQ(content(longest), "x");
  EXPECT_THROW(check_writable(too_long), FileError);
  EXPECT_THROW(check_writable(folder / std::string(100'000, 'x')), FileError);
  EXPECT_THROW(check_writable(""), FileError);
  EXPECT_THROW(check_writable((folder / "new").string() + "/"), FileError);
}

TEST_F(AtomicFile, LeftoversAreRemovedAndNothingElse) {
  const auto touch = [&](const std::string& name) {
    std::ofstream((folder / name).string()) << "x";
    return folder / name;
  };
  const auto left = touch("run.nc.headflow-tmp-a1B2c3"), own = touch("run.nc"),
             other = touch("run.nc.checkpoint"), backup = touch("run.nc.backup"),
             of_others = touch("other.nc.headflow-tmp-a1B2c3"),
             longer = touch("run.nc.headflow-tmp-a1B2c3d"),
             living = touch("run.nc.headflow-tmp-living");
  const int file = ::open(living.c_str(), O_RDONLY);  // as a writer in another process would
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const std::vector<fs::path> kept = {own, other, backup, of_others, longer, living};
  remove_leftovers((folder / "run.nc").string());
  EXPECT_FALSE(fs::exists(left));
  for (const auto& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  ::close(file);
  write_atomically(folder / "run.nc", std::string("new"));
  EXPECT_FALSE(fs::exists(living)) << "its writer is gone; the next one cleans up";
  for (const auto& path : {other, backup, of_others, longer}) EXPECT_TRUE(fs::exists(path)) << path;
}

}  // namespace
}  // namespace headflow::atomic_file_test
