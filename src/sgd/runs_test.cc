// Runs that are stopped and taken up again, their population loss, and how far they are from
// limits.

#include "sgd/runs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sgd/comparison.h"
#include "support/problems.h"

namespace headflow::runs_test {
namespace {

Problem problem() { return Problem(testing::problem_options("softmax-1", "gaussian", 4, 2, 2)); }

SgdOptions few_steps() {
  SgdOptions options;
  options.dim = 40;
  options.batch = 100;
  options.lr = 0.5;
  options.steps = 6;
  options.outputs = 3;
  options.runs = 2;
  return options;
}

EngineOptions rough() {
  EngineOptions options;
  options.tolerance = 1e-3;
  return options;
}

/// Keeps the last checkpoint.
class Memory final : public SgdStore {
 public:
  std::optional<Found> load(const Context&) override {
    if (!kept) return std::nullopt;
    return Found{*kept, "memory"};
  }
  void started(const Sgd&) override { ++starts; }
  void save(const SgdCheckpoint& checkpoint) override { kept = checkpoint; }
  double seconds() const override { return 0; }

  std::optional<SgdCheckpoint> kept;
  int starts = 0;
};

void expect_same(const SgdRuns& a, const SgdRuns& b) {
  ASSERT_EQ(a.recorded.size(), b.recorded.size());
  for (std::size_t run = 0; run < a.recorded.size(); ++run) {
    ASSERT_EQ(a.recorded[run].size(), b.recorded[run].size());
    for (std::size_t i = 0; i < a.recorded[run].size(); ++i) {
      const SgdRecord &x = a.recorded[run][i], &y = b.recorded[run][i];
      EXPECT_EQ(x.state.m(), y.state.m());
      EXPECT_EQ(x.state.q(), y.state.q());
      EXPECT_EQ(x.state.blocks.values(), y.state.blocks.values());
      EXPECT_EQ(x.loss.mean, y.loss.mean);
    }
  }
}

TEST(SgdRuns, WhatWasStoppedGoesOnWithTheSameBits) {
  const Problem p = problem();
  const SgdOptions options = few_steps();
  const auto starts = Sgd::starts(p, options, 1);
  const SgdRuns whole = run_sgd(p, options, rough(), starts);
  EXPECT_EQ(whole.outcome, SgdOutcome::finished);
  EXPECT_EQ(whole.output_steps, (std::vector<std::int64_t>{0, 2, 4, 6}));
  Memory memory;
  int asked = 0;
  const SgdRuns part = run_sgd(p, options, rough(), starts,
                               Context::until([&] { return memory.kept && ++asked > 3; }), &memory);
  EXPECT_EQ(part.outcome, SgdOutcome::interrupted);
  EXPECT_LT(part.taken, 6);
  ASSERT_TRUE(memory.kept);
  const SgdRuns rest = run_sgd(p, options, rough(), starts, {}, &memory);
  EXPECT_EQ(rest.outcome, SgdOutcome::finished);
  EXPECT_EQ(memory.starts, 2);
  expect_same(whole, rest);
  // A checkpoint of other runs is refused, and its place is named.
  SgdOptions other = options;
  other.runs = 1;
  try {
    run_sgd(p, other, rough(), Sgd::starts(p, other, 1), {}, &memory);
    ADD_FAILURE() << "accepted";
  } catch (const FileError& e) {
    EXPECT_NE(std::string(e.what()).find("memory: "), std::string::npos) << e.what();
  }
}

TEST(SgdRuns, ThePopulationLossIsThatOfTheRecordedStates) {
  const Problem p = problem();
  SgdOptions options = few_steps();
  options.loss = SgdLoss::population;
  const SgdRuns runs = run_sgd(p, options, rough(), Sgd::starts(p, options, 1));
  ASSERT_EQ(runs.population.loss.size(), 2u);
  const SgdState& state = runs.recorded[1][2].state;
  const Problem with_p = p.with_overlaps(state.p());
  const Point point = with_p.frame().enter(point_of(state));
  EngineOptions sampled = testing::engine_options(400'000, 3);
  sampled.engine = EngineName::mc;
  Evaluation e;
  make_engine(with_p, sampled)->evaluate(point, {}, e);
  EXPECT_NEAR(runs.population.loss[1][2], e.loss, 5 * e.loss_error + 1e-3);
  // The loss of another state is another one.
  EXPECT_GT(std::abs(runs.population.loss[1][0] - e.loss), 5 * e.loss_error + 1e-3);
  EXPECT_TRUE(
      population_loss(p, rough(), runs.recorded, Context::until([] { return true; })).loss.empty());
}

TEST(SgdComparison, DeviationsAreThoseOfTheNumbers) {
  const Problem p = problem();
  const SgdOptions options = few_steps();
  const SgdRuns runs = run_sgd(p, options, rough(), Sgd::starts(p, options, 1));
  Theory theory = follow_limit(p, rough(), options, runs, {LimitKind::flow, 1e-4, 1e-6});
  ASSERT_EQ(theory.runs.size(), 2u);
  double squares = 0, largest = 0;
  for (std::size_t run = 0; run < 2; ++run) {
    ASSERT_EQ(theory.runs[run].time.size(), 4u);
    // The same start.
    EXPECT_LT((runs.recorded[run][0].state.m() - theory.runs[run].point[0].m).norm(), 1e-12);
    EXPECT_LT((runs.recorded[run][0].state.q() - theory.q[run][0]).norm(), 1e-12);
    for (std::size_t i = 0; i < 4; ++i) {
      const Matrix off = runs.recorded[run][i].state.m() - theory.runs[run].point[i].m;
      squares += off.squaredNorm();
      largest = std::max(largest, off.cwiseAbs().maxCoeff());
    }
  }
  const Deviations found = deviations(runs, theory);
  EXPECT_EQ(found.times, 4u);
  EXPECT_NEAR(found.m.rms, std::sqrt(squares / 32), 1e-15);
  EXPECT_EQ(found.m.largest, largest);
  // A theory that ended early is compared as far as it goes.
  theory.runs[0].time.resize(2);
  EXPECT_EQ(deviations(runs, theory).times, 2u);
  theory.q[1][1](0, 0) += 100;
  EXPECT_GT(deviations(runs, theory).q.largest, 90);
}

}  // namespace
}  // namespace headflow::runs_test
