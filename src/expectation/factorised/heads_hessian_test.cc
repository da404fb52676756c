// All second derivatives at once of heads that are normalised one by one, against exact products.

#include <gtest/gtest.h>

#include "expectation/factorised/factorised.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/random_problems.h"

namespace headflow::heads_hessian_test {
namespace {

using testing::Draw;
using testing::flatten;

constexpr double kClose = 1e-6;  // of the largest second derivative, or of one

struct Kind {
  const char* name;
  double size, orthogonal;  ///< of the heads
};
constexpr Kind kKinds[] = {{"plain", 0.7, 0.7}, {"R = 0", 1.0, 0.0},  {"collinear", 1.5, 0.0},
                           {"m = 0", 0.0, 0.5}, {"origin", 0.0, 0.0}, {"small", 1e-3, 1e-3},
                           {"large", 5.0, 0.5}};

/// By products with exact derivatives, one for each direction.
Matrix by_products(Factorised& engine, const Point& point) {
  Matrix out(point.size(), point.size());
  for (Eigen::Index i = 0; i < point.size(); ++i) {
    Point direction = point, product;
    direction.unpack(Vector(Vector::Unit(point.size(), i)).data());
    engine.hessian_product(point, direction, product);
    out.col(i) = flatten(product);
  }
  return out;
}

struct Case {
  Problem problem;
  Point point;
};
Case random_case(const Kind& kind, const char* activation, const char* prior, std::uint64_t seed) {
  Draw draw(seed);
  const int tokens[] = {2, 3, 8, 100};
  const int L = tokens[draw.integer(0, 3)], F = draw.integer(2, 3);
  const int H = draw.integer(2, kind.size > 2 ? 3 : 5);
  Problem problem(testing::random_options(activation, prior, L, H, F, draw));
  Point point = testing::random_heads(problem, kind.size, kind.orthogonal, draw);
  if (std::string(kind.name) == "collinear") point.m.row(1) = -point.m.row(0);
  return {std::move(problem), point};
}

Factorised make(const Problem& problem, int threads = 1) {
  EngineOptions options = testing::engine_options(0, 1);
  options.tolerance = 1e-8;
  return {problem, options, Context::threads(threads)};
}

TEST(HeadsHessian, IsThatOfProducts) {
  std::uint64_t seed = 0;
  for (const Kind& kind : kKinds) {
    for (const char* activation : {"softmax", "softmax-1"}) {
      for (const char* prior : testing::kAllPriors) {
        ++seed;
        // Every fourth in make test; with sanitizers every twelfth of those that are quick.
        if (seed % testing::by_effort<std::uint64_t>(12, 4, 1) != 0) continue;
        if (kind.size > 2 && testing::effort() == testing::Effort::sanitized) continue;
        const auto [problem, point] = random_case(kind, activation, prior, seed);
        SCOPED_TRACE(fmt::format("{} {} {} L {} H {} F {}", kind.name, activation, prior,
                                 problem.L(), problem.H(), problem.F()));
        Factorised engine = make(problem);
        const Matrix exact = by_products(engine, point);
        Matrix at_once, change;
        ASSERT_TRUE(engine.hessian(point, at_once, &change));
        EXPECT_EQ(change.size(), 0);
        const double scale = std::max(1.0, exact.cwiseAbs().maxCoeff());
        EXPECT_LE((at_once - exact).cwiseAbs().maxCoeff(), kClose * scale);
        Evaluation before, after;  // the terms are those of the point again
        make(problem).evaluate(point, {}, before);
        engine.evaluate(point, {}, after);
        EXPECT_EQ(before.loss, after.loss);
        EXPECT_EQ(flatten(before.grad), flatten(after.grad));
      }
    }
  }
}

// Negative control: what a small change of one head does would be seen.
TEST(HeadsHessian, MistakesWouldBeNoticed) {
  const auto [problem, point] = random_case(kKinds[0], "softmax-1", "graded", 3);
  Factorised engine = make(problem);
  Matrix at_once, moved;
  ASSERT_TRUE(engine.hessian(point, at_once));
  Point nearby = point;
  nearby.m(0, 0) += 1e-3;
  ASSERT_TRUE(engine.hessian(nearby, moved));
  EXPECT_GT((at_once - moved).cwiseAbs().maxCoeff(), 10 * kClose);
}

TEST(HeadsHessian, BitIdenticalForAnyNumberOfThreads) {
  Draw draw(11);
  const Problem problem(testing::random_options("softmax-1", "full", 6, 6, 2, draw));
  const Point point = testing::random_heads(problem, 3, 0.7, draw);
  Matrix first, got;
  Factorised one = make(problem), three = make(problem, 3);
  ASSERT_TRUE(one.hessian(point, first));
  ASSERT_TRUE(three.hessian(point, got));
  EXPECT_EQ(first, got);
}

// What it is for: many heads, where it takes fewer gradients than there are directions.
TEST(HeadsHessian, IsOfferedWhereItPays) {
  for (const auto& [H, offered] :
       {std::pair{2, WholeHessian::none}, {8, WholeHessian::differences}}) {
    Draw draw(1);
    const Problem problem(testing::random_options("softmax", "flipping", 5, H, 2, draw));
    Factorised engine = make(problem);
    EXPECT_EQ(engine.whole_hessian(), WholeHessian::none) << "no nodes yet";
    engine.adapt(testing::random_heads(problem, 1, 0.5, draw));
    EXPECT_EQ(engine.whole_hessian(), offered);
    EXPECT_FALSE(engine.quasi_random());
  }
}

}  // namespace
}  // namespace headflow::heads_hessian_test
