// Computations stop when they are told to.

#include <gtest/gtest.h>

#include <atomic>

#include "core/error.h"
#include "core/workers.h"
#include "support/problems.h"
#include "support/stop.h"
#include "theory/bayes.h"

namespace headflow {
namespace {

Problem problem_of(const std::string& activation, int L) {
  return Problem(testing::problem_options(activation, "mixture", L, 2, 2));
}

TEST(Interruption, Workers) {
  for (const int threads : {1, 3}) {
    std::atomic<int> asked = 0, done = 0;
    const Workers workers(testing::stopped_after(asked, 10, threads));
    EXPECT_THROW(workers.for_each_block(1000, [&](std::size_t, int) { ++done; }), Interrupted);
    EXPECT_LT(done, 10);
  }
  for (const int threads : {-1, kMostThreads + 1, 1'000'000}) {
    EXPECT_THROW(thread_executor(threads), OptionError);
  }
}

TEST(Interruption, EveryEngine) {
  for (const std::string activation : {"softmax", "softmax-1", "b-softmax"}) {
    const Problem problem = problem_of(activation, 6);
    const Point point = testing::random_point(problem, 5);
    for (const auto& [name, text] : kNames<EngineName>) {
      SCOPED_TRACE(text);
      EngineOptions options = testing::engine_options(name == EngineName::automatic ? 0 : 4096, 1);
      options.engine = name;
      std::atomic<bool> go_on = true;
      const Context context = testing::stopped_when([&] { return !go_on; });
      Evaluation out;
      const auto engine = make_engine(problem, options, {&point, false}, context);
      engine->evaluate(point, {}, out);
      go_on = false;
      Point product;
      EXPECT_THROW(engine->evaluate(point, {}, out), Interrupted);
      EXPECT_THROW(engine->hessian_product(point, point, product), Interrupted);
      EXPECT_THROW(
          make_engine(problem, options, {&point, false}, context)->evaluate(point, {}, out),
          Interrupted);
      if (name == EngineName::factorised) {
        EXPECT_THROW(engine->adapt(point), Interrupted);
      }
    }
  }
}

/// Questions come often: many in one evaluation, however long its samples are.
TEST(Interruption, OftenEnough) {
  const Problem long_one = problem_of("softmax", 40'000);
  for (const EngineName name : {EngineName::qmc, EngineName::mc}) {
    std::atomic<int> asked = 0;
    EngineOptions options = testing::engine_options(64, 1);
    options.engine = name;
    options.randomisations = 2;
    const Point point = testing::random_point(long_one, 5);
    const auto engine =
        make_engine(long_one, options, {}, testing::stopped_after(asked, 1'000'000));
    Evaluation out;
    asked = 0;
    engine->evaluate(point, {}, out);
    const std::int64_t groups = engine->samples() / 64;
    EXPECT_GE(asked, std::max<std::int64_t>(2, groups)) << to_string(name);
  }
}

TEST(Interruption, BayesRisk) {
  for (const BayesMethod method :
       {BayesMethod::automatic, BayesMethod::grid, BayesMethod::sampling}) {
    std::atomic<int> asked = 0;
    const BayesOptions options{.tolerance = 1e-6, .method = method, .seed = 1};
    EXPECT_THROW(bayes_risk(problem_of("softmax", 5), options, testing::stopped_after(asked, 20)),
                 Interrupted);
  }
}

}  // namespace
}  // namespace headflow
