// What is stored is looked at before it is used; steps can be stopped; memory has a bound.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "core/error.h"
#include "sgd/lane_grams.h"
#include "sgd/memory.h"
#include "sgd/sgd.h"
#include "support/problems.h"
#include "support/stop.h"

namespace headflow::restart_test {
namespace {

const Workers kOneThread;

SgdOptions small(SgdAlgorithm method) {
  SgdOptions options;
  options.method = method;
  options.dim = 40;
  options.batch = 700;  // more than one block of samples
  options.lr = 0.5;
  options.steps = 6;
  options.outputs = 3;
  options.runs = 2;
  return options;
}

Problem problem() { return Problem(testing::problem_options("softmax-1", "gaussian", 4, 3, 2)); }

std::string complaint(Sgd& sgd, const SgdCheckpoint& checkpoint) {
  try {
    sgd.restore(checkpoint);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(SgdRestart, SizesAreThoseOfTheRuns) {
  for (const auto& [method, name] : kNames<SgdAlgorithm>) {
    SCOPED_TRACE(name);
    const Problem p = problem();
    const SgdOptions options = small(method);
    Sgd sgd(p, options, 1, Sgd::starts(p, options, 1));
    sgd.advance();
    sgd.advance();
    const SgdCheckpoint good = sgd.checkpoint();
    EXPECT_EQ(complaint(sgd, good), "accepted");
    const auto refused = [&](const char* why, const auto& change) {
      SgdCheckpoint bad = good;
      change(bad);
      EXPECT_NE(complaint(sgd, bad).find(why), std::string::npos) << complaint(sgd, bad);
    };
    refused("runs", [](auto& c) { c.saved.pop_back(); });
    refused("runs", [](auto& c) { c.recorded.pop_back(); });
    refused("sizes of its states", [](auto& c) { c.saved[1].pop_back(); });
    refused("sizes of its states", [](auto& c) { c.saved[1].clear(); });
    refused("output times", [](auto& c) { c.recorded[1].pop_back(); });
    refused("output times", [](auto& c) { c.recorded = {{}, {}}; });
    refused("steps", [](auto& c) { c.step = 1'000'000; });
    refused("steps", [](auto& c) { c.step = -1; });
    refused("sizes of its records", [](auto& c) { c.recorded[0][0].state.U.resize(1, 1); });
    refused("sizes of its records",
            [](auto& c) { c.recorded[1][0].state.blocks.values().resize(9); });
    refused("not finite", [](auto& c) { c.recorded[0][0].state.blocks["v"][0] = HUGE_VAL; });
    const SgdState start = initial_state(p, 40, 1, 0);
    const auto make = method == SgdAlgorithm::direct ? make_direct : make_reduced;
    EXPECT_THROW(make(p, {40, 9, 0.1, 1, 0}, start, kOneThread)->restore({1.0, 2.0}), Error);
  }
}

// Stopped after any number of questions, and then gone on with: the same bits, at any threads.
TEST(SgdRestart, AStepThatIsStoppedLeavesNoTrace) {
  const Problem p = problem();
  for (const auto& [method, name] : kNames<SgdAlgorithm>) {
    const SgdOptions options = small(method);
    const auto starts = Sgd::starts(p, options, 1);
    Sgd whole(p, options, 1, starts);
    while (!whole.finished()) EXPECT_TRUE(whole.advance());
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", name, threads));
      std::atomic<int> left = 0;
      Sgd sgd(p, options, 1, starts, testing::stopped_when([&] { return left-- <= 0; }, threads));
      int stops = 0;
      for (int allowed = 0; !sgd.finished(); allowed += 37) {
        left = allowed;
        const auto before = sgd.checkpoint();
        if (sgd.advance()) continue;
        ++stops;
        const auto after = sgd.checkpoint();
        EXPECT_EQ(after.saved, before.saved);
        EXPECT_EQ(after.step, before.step);
        EXPECT_EQ(after.recorded.front().size(), before.recorded.front().size());
      }
      EXPECT_GT(stops, 5);
      EXPECT_EQ(sgd.checkpoint().saved, whole.checkpoint().saved);
      for (std::size_t i = 0; i < whole.recorded()[1].size(); ++i) {
        EXPECT_EQ(sgd.recorded()[1][i].loss.mean, whole.recorded()[1][i].loss.mean);
      }
    }
  }
}

// A chunk has axes + 2 H chi numbers. Each has its own stretch of random numbers, also beyond 256.
TEST(SgdRestart, RetriesNeverShareNumbers) {
  const StreamKey key{3, Purpose::sgd_retry, 0};
  const auto first = [&](std::uint64_t group, std::uint64_t number, int lane) {
    return chi_retries(key, {group, number}, lane).bits();
  };
  std::set<std::uint64_t> seen;
  int count = 0;
  for (std::uint64_t group = 0; group < 4; ++group) {
    for (std::uint64_t number = 0; number < 1100; ++number) {
      for (int lane = 0; lane < kLanes; lane += 7, ++count) seen.insert(first(group, number, lane));
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), count);  // with group * 256 + number it would be fewer
  // Below 256 they are what they have always been.
  EXPECT_EQ(first(5, 7, 3), RandomStream(key, (5 * 256 + 7) * kLanes + 3).bits());
}

TEST(SgdMemory, IsBoundedInTheBatch) {
  const Problem p = problem();
  SgdOptions options = small(SgdAlgorithm::reduced);
  options.batch = 1'000'000'000;
  EXPECT_LT(sgd_memory(p, options, 2).run, 1e8);
  // The runs themselves, not only the estimate: a first question is asked after they are made.
  Sgd sgd(p, options, 1, Sgd::starts(p, options, 1), testing::stopped_when([] { return true; }, 2));
  EXPECT_FALSE(sgd.advance());
}

TEST(SgdMemory, WhatDoesNotFitIsRefusedWithItsSize) {
  const auto rejected = [](const char* key, const char* says, const auto& change) {
    SgdOptions options = small(SgdAlgorithm::direct);
    change(options);
    try {
      options.check(problem(), 4);
      ADD_FAILURE() << key << " accepted";
    } catch (const OptionError& e) {
      EXPECT_EQ(e.key(), key);
      EXPECT_NE(e.rule().find(says), std::string::npos) << e.rule();
    }
  };
  rejected("sgd.dim", "sgd.method = \"reduced\"", [](auto& o) { o.dim = std::int64_t{1} << 52; });
  rejected("sgd.dim", "to 2^52", [](auto& o) { o.dim = std::int64_t{1} << 62; });
  rejected("sgd.runs", "sgd.first_run", [](auto& o) { o.dim = 1'000'000, o.runs = 4'000'000; });
  rejected("sgd.outputs", "TB", [](auto& o) {
    o.method = SgdAlgorithm::reduced, o.outputs = 10'000'000, o.steps = 20'000'000,
    o.runs = 1'000'000;
    o.batch = 1;
  });
  rejected("sgd.batch", "10^17 samples", [](auto& o) {
    o.method = SgdAlgorithm::reduced, o.steps = 1'000'000'000, o.batch = 1'000'000'000;
  });
}

}  // namespace
}  // namespace headflow::restart_test
