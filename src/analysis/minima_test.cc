#include "analysis/minima.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "support/effort.h"
#include "support/problems.h"

namespace headflow::minima_test {
namespace {

EngineOptions one_thread() {
  EngineOptions options;
  return options;
}

// A reflected feature (here: permuted heads) leads to the same end; another loss, or the same loss
// with other curvatures, is another end.
TEST(Minima, SameUpToSymmetries) {
  ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, 2, 2);
  options.prior_parameters["nu"] = testing::row({4.0, 2.0});
  const Problem problem(options);
  Point start = initial_point(problem, 0.1, 1);
  const FixedPoint a = find_fixed_point(problem, one_thread(), start, {});
  ASSERT_TRUE(a.converged) << a.message;
  start.m.col(0) *= -1;
  FixedPoint b = find_fixed_point(problem, one_thread(), start, {});
  ASSERT_TRUE(b.converged) << b.message;
  EXPECT_GT((a.point.m - b.point.m).norm(), 0.1);
  EXPECT_TRUE(same_end(a, b));
  FixedPoint other = b;
  other.loss += 1e-4;
  EXPECT_FALSE(same_end(a, other));
  other = b;
  other.eigenvalues[0] += 0.01 * b.eigenvalues.maxCoeff();
  EXPECT_FALSE(same_end(a, other));
}

// Every start of every seed is one of its own: seed + number made start 1 of seed 1 that of seed 2.
TEST(Minima, StartsOfDifferentSeedsDiffer) {
  const Problem problem(testing::problem_options("softmax", "gaussian", 4, 2, 2));
  std::set<double> entries;
  std::size_t count = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    MinimaOptions options;
    options.seed = seed;
    for (int number = 0; number < 20; ++number) {
      bool of_the_paper = false;
      const Point start = start_number(problem, options, number, of_the_paper);
      EXPECT_EQ(of_the_paper, number % 5 == 0);
      entries.insert(start.m(0, 0));
      ++count;
      if (number > 0) continue;
      EXPECT_EQ(start.m, initial_point(problem, options.noise, seed).m) << "where a flow starts";
    }
  }
  EXPECT_EQ(entries.size(), count);
}

// Stopped from within: what had arrived is counted.
TEST(Minima, Interrupted) {
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  class AfterTwo final : public Observer {
   public:
    Wish wish() const override { return done_ >= 2 ? Wish::stop_now : Wish::go_on; }
    void status(const Status& now) override { done_ = static_cast<int>(now.count); }

   private:
    std::atomic<int> done_ = 0;
  };
  const Context context = Context::threads(2).watched_by(std::make_shared<AfterTwo>());
  const Minima found = find_minima(problem, one_thread(), {}, context);
  EXPECT_EQ(found.starts, 2);
}

// Two softmax heads on the flipping spike: one minimum, from everywhere, and the same bits for any
// number of threads.
TEST(Minima, OfTwoHeads) {
  const Problem problem(testing::problem_options("softmax", "flipping", 4, 2, 2));
  MinimaOptions options;
  options.starts = 10;
  const Minima one = find_minima(problem, one_thread(), options);
  ASSERT_GE(one.found.size(), 1u);
  EXPECT_EQ(one.starts, 10);
  EXPECT_EQ(one.paper_starts, 2);
  EXPECT_EQ(one.failed, 0);
  EXPECT_EQ(one.found.front().end.index, 0);
  EXPECT_EQ(one.found.front().paper_starts, 2);
  const Minima two = find_minima(problem, one_thread(), options, Context::threads(2));
  ASSERT_EQ(two.found.size(), one.found.size());
  for (std::size_t i = 0; i < one.found.size(); ++i) {
    EXPECT_EQ(two.found[i].end.loss, one.found[i].end.loss);
    EXPECT_EQ(two.found[i].starts, one.found[i].starts);
  }
}

}  // namespace
}  // namespace headflow::minima_test
