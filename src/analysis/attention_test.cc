#include "analysis/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"

namespace headflow::attention_test {
namespace {

// The loss, averaged over maps, is the engine's.
TEST(Attention, MapsGiveTheLoss) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    SCOPED_TRACE(activation);
    const Problem problem(testing::problem_options(activation, "flipping", 4, 3, 2));
    const Point point = testing::random_point(problem, 5);
    constexpr int kSequences = 40'000;
    double sum = 0, square = 0;
    for (const AttentionMap& map : attention_maps(problem, point, kSequences, 7)) {
      const double loss = (map.mean - Vector::Unit(4, map.relevant)).squaredNorm();
      sum += loss / kSequences;
      square += loss * loss / kSequences;
    }
    Evaluation e;
    EngineOptions options = testing::engine_options(0, 1);
    options.tolerance = 1e-6;
    make_engine(problem, options)->evaluate(point, {}, e);
    // Four standard errors: false alarm once in 16,000.
    EXPECT_NEAR(sum, e.loss, 4 * std::sqrt((square - sum * sum) / kSequences));
  }
}

TEST(Attention, HugeScoresAreFine) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 3, 2, 2));
  Point point = testing::random_point(problem, 1);
  Matrix scores(2, 3);
  scores << 2000, 0, -2000, -3000, -3000, -3000;
  const Matrix map = attention_of(problem, point, scores);
  EXPECT_TRUE(map.allFinite());
  EXPECT_NEAR(map(0, 0), point["v"][0], 1e-12);
  EXPECT_NEAR(map.row(1).sum(), 0, 1e-12);
}

}  // namespace
}  // namespace headflow::attention_test
