#include "study/time_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace headflow::time_left_test {
namespace {

/// Tasks as made up as can be: what is expected, and what they take.
struct MadeUp {
  std::vector<TaskCost> tasks;
  std::vector<double> takes;
};

/// A few long tasks and many short ones, longest first, as `reproduce` has them. What they take is
/// `speed` times what is expected, times e^(scatter N(0, 1)), and times e^(bias N(0, 1)) in a
/// group.
MadeUp made_up(double speed, double scatter, double bias, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  MadeUp out;
  const std::vector<std::pair<int, double>> groups = {{9, 20.0}, {3, 12.0}, {60, 1.0}, {200, 0.05}};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double wrong = std::exp(bias * normal(random));
    for (int i = 0; i < groups[g].first; ++i) {
      out.tasks.push_back({g, groups[g].second});
      out.takes.push_back(speed * wrong * groups[g].second * std::exp(scatter * normal(random)));
    }
  }
  return out;
}

using Estimate = std::function<double(double now)>;
using Finished = std::function<void(std::size_t task, double now)>;

struct Course {
  double first = 0;  ///< the estimate before anything has run
  double total = 0;  ///< what it took
  double jump = 1;   ///< largest factor between two expected ends that follow each other
  double off = 0;    ///< largest |expected end - end| / end after a fifth of the time
};

/// Two threads take the tasks in turn; the estimate is asked all the time.
Course simulate(const MadeUp& work, const Finished& start, const Finished& finish,
                const Estimate& left) {
  Course out;
  out.first = left(0);
  struct Busy {
    double until;
    std::size_t task;
  };
  std::vector<Busy> threads;
  std::vector<std::pair<double, double>> ends;  // at a time, expected then
  std::size_t next = 0;
  double now = 0;
  while (next < work.tasks.size() || !threads.empty()) {
    while (threads.size() < 2 && next < work.tasks.size()) {
      start(next, now);
      threads.push_back({now + work.takes[next], next});
      ++next;
    }
    const auto first = std::ranges::min_element(threads, {}, &Busy::until);
    const double before = now;
    for (int i = 0; i < 20; ++i) {
      now = before + (first->until - before) * i / 20;
      ends.emplace_back(now, now + left(now));
    }
    now = first->until;
    finish(first->task, now);
    threads.erase(first);
    ends.emplace_back(now, now + left(now));
  }
  out.total = now;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const double factor = ends[i].second / ends[i - 1].second;
    out.jump = std::max({out.jump, factor, 1 / factor});
    if (ends[i].first < 0.2 * out.total) continue;
    out.off = std::max(out.off, std::abs(ends[i].second / out.total - 1));
  }
  return out;
}

Course by_costs(const MadeUp& work) {
  TimeLeft left(work.tasks, 2);
  return simulate(
      work, [&](std::size_t task, double now) { left.start(task, now); },
      [&](std::size_t task, double now) { left.finish(task, now); },
      [&](double now) { return left.seconds(now); });
}

/// The share of the tasks that are done, as if all were alike.
Course by_counting(const MadeUp& work) {
  double done = 0;
  const auto all = static_cast<double>(work.tasks.size());
  return simulate(
      work, [](std::size_t, double) {}, [&](std::size_t, double) { done += 1; },
      [&](double now) { return done > 0 ? now * (all - done) / done : 0; });
}

TEST(TimeLeft, IsRightWhenCostsAre) {
  const Course got = by_costs(made_up(1.0, 0.0, 0.0, 1));
  EXPECT_NEAR(got.first, got.total, 0.1 * got.total);
  EXPECT_LT(got.jump, 1.05);
  EXPECT_LT(got.off, 0.1);
}

// Costs that are wrong by a factor of 1.5 for each group and by 1.3 for each task.
TEST(TimeLeft, IsWithinAFactorOfTwoFromTheStartAndDoesNotJump) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Course got = by_costs(made_up(1.0, 0.26, 0.4, seed));
    EXPECT_LT(got.first, 2 * got.total) << seed;
    EXPECT_GT(got.first, 0.5 * got.total) << seed;
    EXPECT_LT(got.jump, 1.5) << seed;
    EXPECT_LT(got.off, 0.5) << seed;
  }
}

// A machine that is four times as fast or slow: at first the end is off by 300 or 75 per cent,
// after a fifth of the time by half of that.
TEST(TimeLeft, LearnsHowFastTheMachineIs) {
  for (const double speed : {0.25, 4.0}) {
    const Course got = by_costs(made_up(speed, 0.2, 0.2, 7));
    EXPECT_LT(got.jump, 2.0) << speed;
    EXPECT_LT(got.off, speed < 1 ? 1.5 : 0.375) << speed;
  }
}

// Negative control: counting tasks, the longest first, is what said 2:43 of nine minutes.
TEST(TimeLeft, CountingTasksWouldFail) {
  const Course got = by_counting(made_up(1.0, 0.0, 0.0, 1));
  EXPECT_GT(got.jump, 1.9);
  EXPECT_GT(got.off, 2.0);
}

TEST(TimeLeft, NothingIsLeftAtTheEnd) {
  TimeLeft left({{0, 1.0}, {1, 2.0}}, 2);
  left.start(0, 0.0);
  left.start(1, 0.0);
  left.finish(0, 1.0);
  EXPECT_GT(left.seconds(1.0), 0.5);
  left.finish(1, 2.0);
  EXPECT_EQ(left.seconds(2.0), 0.0);
  EXPECT_EQ(TimeLeft({}, 2).seconds(0.0), 0.0);
}

}  // namespace
}  // namespace headflow::time_left_test
