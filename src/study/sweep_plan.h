#pragma once

// What a sweep varies and measures: axes over keys, and the configuration of each task. Axes are
// made and checked by check_plan.h, whoever writes them. In a configuration file they are the table
// [sweep]:
//
//   [sweep]
//   measure = ["end", "bayes"]
//   [[sweep.axis]]
//   key = "problem.heads"
//   range = [1, 6]              # or values = [...], linspace = [a, b, n], logspace = [a, b, n]
//   [[sweep.axis]]              # keys that vary together
//   name = "prior"
//   keys = ["problem.prior", "problem.nu"]
//   values = [["flipping", 10.0], ["gaussian", 5.0]]
//   [[sweep.axis]]              # one number of a list
//   key = "problem.nu[2]"
//   logspace = [0.5, 8.0, 5]

#include <string>
#include <string_view>
#include <vector>

#include "study/config.h"
#include "study/keys.h"
#include "study/measure_info.h"
#include "study/value.h"

namespace headflow {

/// Tasks that a sweep may have.
inline constexpr std::size_t kMostTasks = 1'000'000;

/// Tables whose keys the numbers of a task depend on, and which an axis may vary.
const std::vector<std::string>& swept_sections();

/// The key that an axis names, and which of its numbers: problem.nu[2] is the second, problem.nu
/// (0) all of it.
struct AxisTarget {
  std::string key;
  std::size_t element = 0;
};
AxisTarget target_of(const std::string& name);

struct SweepAxis {
  std::string name;                        ///< the dimension in the result
  std::vector<std::string> keys;           ///< that vary together
  std::vector<std::vector<Value>> points;  ///< [index][key]
  std::vector<double> numbers;             ///< of each index, if it is one number; else empty
  std::vector<std::int64_t> integers;      ///< the same, of a key that takes whole numbers
  std::vector<std::string> labels;         ///< of each index
};

/// How many numbers of a key one number stands for: a single nu is both nu1 and nu2.
std::size_t meant_by_one(const Config& config, const Key& key);

struct SweepPlan {
  Measures measures;
  std::vector<SweepAxis> axes;
  /// [point] was given for this sweep, by a flag or a keyword: something must start there.
  bool point_is_given = false;

  /// The product of the axes; the last one varies fastest.
  std::size_t tasks() const;
  /// Position of a task along each axis.
  std::vector<std::size_t> position(std::size_t task) const;
  /// The configuration of a task.
  Config config_of(std::size_t task, const Config& base) const;
  /// True if an axis sets this key ("problem.heads"), or one of its numbers.
  bool varies(std::string_view key) const;
  /// True if [point] was given, or an axis sets it.
  bool sets_point() const;
  /// Keys of which the axes leave nothing of the file.
  std::vector<std::string> replaced_keys() const;
  /// "heads 3, prior flipping"
  std::string describe(std::size_t task) const;
  /// The table as it would be written with all values spelled out.
  std::string toml() const;
};

}  // namespace headflow
