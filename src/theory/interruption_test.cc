// Computations stop when they are told to.

#include <gtest/gtest.h>

#include <atomic>

#include "core/error.h"
#include "core/parallel.h"
#include "support/problems.h"
#include "theory/bayes.h"

namespace headflow {
namespace {

Problem problem_of(const std::string& activation, int L) {
  return Problem(testing::problem_options(activation, "mixture", L, 2, 2));
}

/// Says no from the n-th question on.
GoOn no_after(std::atomic<int>& asked, int n) {
  return [&asked, n] { return ++asked < n; };
}

TEST(Interruption, Workers) {
  for (const int threads : {1, 3}) {
    std::atomic<int> asked = 0, done = 0;
    const Workers workers(threads, no_after(asked, 10));
    EXPECT_THROW(workers.for_each_block(1000, [&](std::size_t, int) { ++done; }), Interrupted);
    EXPECT_LT(done, 10);
  }
  for (const int threads : {-1, kMostThreads + 1, 1'000'000}) {
    EXPECT_THROW(Workers{threads}, OptionError);
  }
}

TEST(Interruption, EveryEngine) {
  for (const std::string activation : {"softmax", "softmax-1", "b-softmax"}) {
    const Problem problem = problem_of(activation, 6);
    const Point point = testing::random_point(2, 2, 5);
    for (const std::string name : {"factorised", "qmc", "mc", "auto"}) {
      EngineOptions options = testing::engine_options(name == "auto" ? 0 : 4096, 1);
      options.engine = name;
      std::atomic<bool> go_on = true;
      options.go_on = [&] { return go_on.load(); };
      Evaluation out;
      const auto engine = make_engine(problem, options, {&point, false});
      engine->evaluate(point, {}, out);
      go_on = false;
      Point product;
      EXPECT_THROW(engine->evaluate(point, {}, out), Interrupted) << name;
      EXPECT_THROW(engine->hessian_product(point, point, product), Interrupted) << name;
      EXPECT_THROW(make_engine(problem, options, {&point, false})->evaluate(point, {}, out),
                   Interrupted)
          << name;
      if (name == "factorised") {
        EXPECT_THROW(engine->adapt(point), Interrupted);
      }
    }
  }
}

/// Questions come often: many in one evaluation, however long its samples are.
TEST(Interruption, OftenEnough) {
  const Problem long_one = problem_of("softmax", 40'000);
  for (const std::string name : {"qmc", "mc"}) {
    std::atomic<int> asked = 0;
    EngineOptions options = testing::engine_options(64, 1);
    options.engine = name;
    options.randomisations = 2;
    options.go_on = no_after(asked, 1'000'000);
    const Point point = testing::random_point(2, 2, 5);
    const auto engine = make_engine(long_one, options);
    Evaluation out;
    asked = 0;
    engine->evaluate(point, {}, out);
    const std::int64_t groups = engine->samples() / 64;
    EXPECT_GE(asked, std::max<std::int64_t>(2, groups)) << name;
  }
}

TEST(Interruption, BayesRisk) {
  for (const BayesMethod method :
       {BayesMethod::automatic, BayesMethod::grid, BayesMethod::sampling}) {
    std::atomic<int> asked = 0;
    const BayesOptions options{
        .tolerance = 1e-6, .method = method, .seed = 1, .threads = 1, .go_on = no_after(asked, 20)};
    EXPECT_THROW(bayes_risk(problem_of("softmax", 5), options), Interrupted);
  }
}

}  // namespace
}  // namespace headflow
