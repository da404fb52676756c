#include "sweep/task_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace headflow::task_store_test {
namespace {

namespace fs = std::filesystem;

class TaskStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  // Tests run side by side, each in a process of its own.
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("headflow_tasks_" + std::to_string(::getpid()));
  const TaskIdentity task{"1.0 abc", "[problem]\ntokens = 4\n"};
  const TaskResult result = [] {
    TaskResult out{
        {{"loss", "the loss", {}, {0.1}, false, {1e-3}, {ErrorKind::fresh_samples}, "off"},
         {"error", "its error", {{"time", 4}}, {HUGE_VAL, -HUGE_VAL, std::nan(""), -0.0}, false},
         {"index", "of the Hessian", {{"a", 1}, {"b", 2}}, {3, std::nan("")}, true},
         {"word", "a text", {{"a", 2}}, {}},
         {"count", "exact", {{"a", 1}}, {}}},
        1.25};
    out.quantities[2].units = "tau";
    out.quantities[3].texts = {"one", ""};
    out.quantities[4].integers = {(std::int64_t{1} << 60) + 1};
    return out;
  }();
};

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST_F(TaskStoreTest, GivesBackTheSameBits) {
  TaskStore store(folder.string());
  EXPECT_EQ(store.load(task).found, TaskStore::Found::nothing);
  store.save(task, result);
  const TaskStore::Loaded got = store.load(task);
  ASSERT_EQ(got.found, TaskStore::Found::whole) << got.why;
  EXPECT_EQ(got.result.seconds, 1.25);
  ASSERT_EQ(got.result.quantities.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const Quantity &a = result.quantities[i], &b = got.result.quantities[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.meaning, b.meaning);
    EXPECT_EQ(a.dimensions, b.dimensions);
    EXPECT_EQ(a.errors, b.errors);
    EXPECT_EQ(a.error_kinds, b.error_kinds);
    EXPECT_EQ(a.error_name, b.error_name);
    EXPECT_EQ(a.whole, b.whole);
    EXPECT_EQ(a.texts, b.texts);
    EXPECT_EQ(a.integers, b.integers);
    EXPECT_EQ(a.units, b.units);
    ASSERT_EQ(a.values.size(), b.values.size());
    for (std::size_t k = 0; k < a.values.size(); ++k) {
      EXPECT_TRUE(same_bits(a.values[k], b.values[k])) << a.name << " " << b.values[k];
    }
  }
}

TEST_F(TaskStoreTest, OtherConfigurationsAndOtherBuildsAreOtherTasks) {
  TaskStore store(folder.string());
  store.save(task, result);
  EXPECT_EQ(store.load({task.program, "[problem]\ntokens = 5\n"}).found, TaskStore::Found::nothing);
  EXPECT_EQ(store.load({"1.0 abc-dirty-0123", task.configuration}).found,
            TaskStore::Found::nothing);
}

TEST_F(TaskStoreTest, AnyChangedByteIsDamage) {
  TaskStore store(folder.string());
  store.save(task, result);
  const fs::path path = store.path_of(task.fingerprint());
  const std::string whole = read(path);
  const char* effort = std::getenv("HEADFLOW_TEST_EFFORT");
  const std::size_t step = effort && std::string(effort) == "full" ? 1 : 17;
  for (std::size_t i = 0; i < whole.size(); i += step) {
    std::string changed = whole;
    changed[i] = changed[i] == '7' ? '8' : '7';
    write(path, changed);
    const TaskStore::Loaded got = store.load(task);
    ASSERT_EQ(got.found, TaskStore::Found::damaged) << "byte " << i;
    EXPECT_NE(got.why.find(path.string()), std::string::npos);
  }
  for (std::size_t size = 0; size < whole.size(); size += step) {
    write(path, whole.substr(0, size));
    ASSERT_EQ(store.load(task).found, TaskStore::Found::damaged) << size << " bytes";
  }
  write(path, whole);
  EXPECT_EQ(store.load(task).found, TaskStore::Found::whole);
}

// Text that has its checksum, but is no task.
TEST_F(TaskStoreTest, OddContentIsDamage) {
  TaskStore store(folder.string());
  const auto with_rest = [&](const std::string& rest) {
    write(store.path_of(task.fingerprint()),
          "headflow-task 3 " + fingerprint(rest).text() + "\n" + rest);
    return store.load(task);
  };
  const std::string head = R"({"program":"1.0 abc","configuration":"[problem]\ntokens = 4\n",)";
  const auto quantity = [&](const std::string& size, const std::string& values,
                            const std::string& errors = "[]", const std::string& texts = "[]",
                            const std::string& integers = "[]") {
    return head + R"("seconds":1.0,"quantities":[{"name":"m","meaning":"m","role":"",)" +
           R"("error_name":"","error_kinds":["assumed"],"units":"1","errors":)" + errors +
           R"(,"texts":)" + texts + R"(,"integers":)" + integers +
           R"(,"whole":false,"dimensions":[["a",)" + size + R"(]],"values":)" + values + "}]}";
  };
  EXPECT_EQ(with_rest(quantity("2", "[1.0,\"inf\"]")).found, TaskStore::Found::whole);
  EXPECT_EQ(with_rest(quantity("1", "[1.0]", "[0.5]")).found, TaskStore::Found::whole);
  EXPECT_EQ(with_rest(quantity("1", "[]", "[]", "[\"x\"]")).found, TaskStore::Found::whole);
  EXPECT_EQ(with_rest(quantity("1", "[]", "[]", "[]", "[7]")).found, TaskStore::Found::whole);
  for (const auto& odd : {std::string("null"),
                          std::string("[]"),
                          std::string("{}"),
                          std::string("\xff\xfe"),
                          head + "\"seconds\":1.0}",
                          quantity("3", "[1.0,2.0]"),
                          quantity("2],[\"b\",18446744073709551615", "[1.0,2.0]"),
                          quantity("0", "[1.0]"),
                          quantity("-1", "[1.0]"),
                          quantity("\"2\"", "[1.0,2.0]"),
                          quantity("1", "[\"x\"]"),
                          quantity("1", "[[1.0]]"),
                          quantity("1", "{}"),
                          quantity("1", "[1.0]", "[1.0,2.0]"),
                          quantity("1", "[1.0]", "[]", "[\"x\"]"),
                          quantity("1", "[]", "[]", "[1]"),
                          quantity("1", "[]", "[]", "[]", "[\"x\"]"),
                          quantity("2", "[]", "[]", "[]", "[7]"),
                          quantity("1", "[1.0]", "{\"x\":1}"),
                          quantity("1", "[1.0]", "[\"x\"]")}) {
    EXPECT_EQ(with_rest(odd).found, TaskStore::Found::damaged) << odd;
  }
}

TEST_F(TaskStoreTest, AFileUnderAnotherNameIsNotTrusted) {
  TaskStore store(folder.string());
  store.save(task, result);
  const TaskIdentity other{task.program, "[problem]\ntokens = 40\n"};
  fs::rename(store.path_of(task.fingerprint()), store.path_of(other.fingerprint()));
  EXPECT_EQ(store.load(other).found, TaskStore::Found::damaged);
}

TEST_F(TaskStoreTest, OneProcessAtATime) {
  {
    TaskStore store(folder.string());
    EXPECT_THROW(TaskStore(folder.string()), Error);
  }
  EXPECT_NO_THROW(TaskStore(folder.string()));
}

TEST_F(TaskStoreTest, TidyingKeepsWhatMayBeOfUse) {
  TaskStore store(folder.string());
  std::vector<TaskIdentity> tasks;
  std::vector<Fingerprint> wanted;
  for (int i = 0; i < 6; ++i) {
    tasks.push_back({i == 5 ? "0.9 old" : task.program, "seed = " + std::to_string(i)});
    store.save(tasks.back(), result);
    if (i < 2) wanted.push_back(tasks.back().fingerprint());
  }
  for (const char* name : {"configuration", "000001.json", "000001.json.abc", "mine.txt"}) {
    write(folder / name, "x");
  }
  const std::string leftover = store.path_of(wanted[0]).string() + ".headflow-tmp-abcdef";
  write(leftover, "x");
  std::ranges::sort(wanted);
  store.tidy(task.program, wanted, 2);
  const auto there = [&](int i) {
    return store.has(tasks[static_cast<std::size_t>(i)].fingerprint()) ? 1 : 0;
  };
  EXPECT_EQ(there(0) + there(1), 2);
  EXPECT_EQ(there(2) + there(3) + there(4), 2);
  EXPECT_EQ(there(5), 0);
  EXPECT_FALSE(fs::exists(leftover));
  for (const char* name : {"configuration", "000001.json", "000001.json.abc", "mine.txt"}) {
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
}

}  // namespace
}  // namespace headflow::task_store_test
