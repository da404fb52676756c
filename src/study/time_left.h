#pragma once

// How long tasks that run side by side will still take, from what they are expected to cost and
// from what those have cost that are done.
//
// Tasks of a group are alike (measure, activation, engine): their expected costs c are taken to be
// wrong by a common factor s_g, learnt as
//   s_g = (a_g + w s C_g) / (c_g + w C_g),   s = (a + w C) / (c + w C),
// with a the time that finished tasks took, c what was expected of them, and C what is expected of
// all, in the group and altogether. A task that runs longer than expected counts as one that has
// just finished. The weight w of what was expected keeps the first few tasks from deciding alone.

#include <cstddef>
#include <vector>

namespace headflow {

struct TaskCost {
  std::size_t group = 0;
  double seconds = 0;  ///< expected, on one core
};

/// Times are seconds since anything.
class TimeLeft {
 public:
  TimeLeft(std::vector<TaskCost> tasks, int threads);

  void start(std::size_t task, double now);
  void finish(std::size_t task, double now);
  double seconds(double now) const;

 private:
  struct Sum {
    double expected = 0, done = 0, took = 0, open = 0;  // open: expected of those not started
  };
  /// What would be known if tasks that are overdue had finished now.
  void count_overdue(double now, Sum& all, std::vector<Sum>& groups) const;

  std::vector<TaskCost> tasks_;
  int threads_;
  Sum all_;
  std::vector<Sum> groups_;
  std::vector<std::pair<std::size_t, double>> running_;  // task, when it was started
};

}  // namespace headflow
