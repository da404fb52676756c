// Gradient and Hessian of the factorised engine against differences of its loss and gradient.

#include <gtest/gtest.h>

#include <map>

#include "expectation/factorised/factorised.h"
#include "support/each_target.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/random_problems.h"

namespace headflow::gradient_hessian_test {
namespace {

using testing::Draw;
using testing::flatten;

using testing::Effort;
using testing::effort;

// Differences are of fourth order.
constexpr double kStep = 5e-3, kClose = 1e-7, kSymmetric = 1e-8;

Factorised make_factorised(const Problem& problem, int threads = 1, double tolerance = 1e-10) {
  EngineOptions options = testing::engine_options(0, 1);
  options.tolerance = tolerance;
  return {problem, options, Context::threads(threads)};
}

Point as_point(const Point& shape, const Vector& x) {
  Point out = shape;
  out.unpack(x.data());
  return out;
}
Point moved(const Point& point, double step, const Vector& direction) {
  return as_point(point, flatten(point) + step * direction);
}

/// Losses and gradients at five points on a line through a point.
class Line {
 public:
  Line(Factorised& engine, const Point& point, const Vector& direction, double step) : step_(step) {
    Evaluation e;
    for (int i = 0; i < 5; ++i) {
      engine.evaluate(moved(point, (i - 2) * step, direction), {.loss_error = false}, e);
      loss_[i] = e.loss;
      grad_[i] = flatten(e.grad);
    }
  }
  double first() const {
    return (8 * (loss_[3] - loss_[1]) - (loss_[4] - loss_[0])) / (12 * step_);
  }
  double second() const {
    return (16 * (loss_[3] + loss_[1]) - (loss_[4] + loss_[0]) - 30 * loss_[2]) /
           (12 * step_ * step_);
  }
  Vector of_gradient() const {
    return (8 * (grad_[3] - grad_[1]) - (grad_[4] - grad_[0])) / (12 * step_);
  }

 private:
  double step_, loss_[5];
  Vector grad_[5];
};

struct Kind {
  const char* name;
  double size, orthogonal;  ///< of the heads
  int most_heads, most_joint;
};
constexpr Kind kKinds[] = {{"plain", 0.7, 0.7, 4, 3},     {"R = 0", 1.0, 0.0, 4, 3},
                           {"collinear", 0.8, 0.0, 4, 3}, {"m = 0", 0.0, 0.5, 4, 4},
                           {"origin", 0.0, 0.0, 4, 4},    {"large", 5.0, 0.5, 2, 2}};

struct Case {
  Problem problem;
  Point point;
  Vector u, w;  ///< directions
  bool rank_deficient;
  double tolerance;
  std::string text;
};

Case random_case(const Kind& kind, const std::string& activation, const std::string& prior,
                 std::uint64_t seed) {
  Draw draw(seed);
  const int tokens[] = {1, 2, 2, 3, 8, 100};
  const int L = tokens[draw.integer(kind.size > 2 ? 3 : 0, 5)], F = draw.integer(2, 3);
  const bool joint = activation == "b-softmax";
  const int H = draw.integer(2, joint ? kind.most_joint : kind.most_heads);
  const Problem problem(testing::random_options(activation, prior, L, H, F, draw));
  Point point = testing::random_heads(problem, kind.size, kind.orthogonal, draw);
  const bool collinear = std::string(kind.name) == "collinear";
  if (collinear) point.m.row(1) = point.m.row(0);
  const auto direction = [&] {
    return flatten(testing::random_heads(problem, 1, 1, draw)).normalized().eval();
  };
  const Vector u = direction(), w = direction();
  return {problem,
          point,
          u,
          w,
          kind.orthogonal == 0.0 && (collinear || kind.size == 0.0 || H > F),
          kind.size > 2 ? 1e-9 : 1e-10,
          fmt::format("{} {} {} L {} H {} F {}", kind.name, activation, prior, L, H, F)};
}

void check(const Case& c) {
  Factorised engine = make_factorised(c.problem, 1, c.tolerance);
  engine.adapt(c.point);
  const Line line(engine, c.point, c.u, kStep);
  Evaluation e;
  engine.evaluate(c.point, {}, e);
  EXPECT_LE(e.loss_error, 10 * c.tolerance);
  EXPECT_NEAR(line.first(), flatten(e.grad).dot(c.u), kClose);

  Point Hu, Hw;
  engine.hessian_product(c.point, as_point(c.point, c.u), Hu);
  engine.hessian_product(c.point, as_point(c.point, c.w), Hw);
  const Vector of_u = flatten(Hu), of_w = flatten(Hw);
  EXPECT_LE((line.of_gradient() - of_u).cwiseAbs().maxCoeff(), kClose);
  EXPECT_NEAR(of_u.dot(c.w), of_w.dot(c.u), kSymmetric);

  // Second differences need nodes in every direction in which scores can vary: those of a point
  // beside it, if the covariance of the scores has no full rank at this one.
  double second = line.second();
  if (c.rank_deficient) {
    engine.adapt(moved(c.point, 0.1, c.u));
    second = Line(engine, c.point, c.u, kStep).second();
  }
  EXPECT_NEAR(second, of_u.dot(c.u), kClose);
}

/// Every third of the costly cases, thinned every ninth; of the others, thinned every third, and
/// every seventh with sanitizers.
bool wanted(const Kind& kind, std::uint64_t number) {
  const bool costly = kind.size > 2;
  if (effort() == Effort::sanitized) return !costly && number % 7 == 0;
  if (effort() == Effort::thin) return number % (costly ? 9 : 3) == 0;
  return !costly || number % 3 == 0;
}

TEST(FactorisedDerivatives, AgreeWithDifferences) {
  std::uint64_t seed = 0;
  for (const Kind& kind : kKinds) {
    for (const char* activation : testing::kAllActivations) {
      for (const char* prior : testing::kAllPriors) {
        if (!wanted(kind, ++seed)) continue;
        const Case c = random_case(kind, activation, prior, seed);
        SCOPED_TRACE(c.text);
        check(c);
      }
    }
  }
}

// Negative control: what the differences must notice.
TEST(FactorisedDerivatives, DifferencesNoticeSmallMistakes) {
  const Case c = random_case(kKinds[0], "softmax", "full", 5);
  Factorised engine = make_factorised(c.problem);
  Evaluation e;
  engine.evaluate(c.point, {}, e);
  Point Hu;
  engine.hessian_product(c.point, as_point(c.point, c.u), Hu);
  const Line line(engine, c.point, c.u, kStep);
  EXPECT_GT(std::abs(line.first() - 1.0001 * flatten(e.grad).dot(c.u)), kClose);
  EXPECT_GT((line.of_gradient() - 1.0001 * flatten(Hu)).cwiseAbs().maxCoeff(), kClose);
}

// Few tokens: powers L - 2 and L - 3 of one-token factors that may be tiny.
TEST(FactorisedDerivatives, HessianIsFiniteForFewTokens) {
  for (const char* activation : testing::kAllActivations) {
    for (const int L : {1, 2, 3}) {
      for (const double size : {0.0, 1.0, 3.0}) {
        if (effort() == Effort::sanitized && size > 2) continue;
        SCOPED_TRACE(fmt::format("{} L {} |m| {}", activation, L, size));
        Draw draw(static_cast<std::uint64_t>(L));
        const Problem problem(testing::random_options(activation, "discrete", L, 2, 2, draw));
        Factorised engine = make_factorised(problem, 1, 1e-8);
        Point point = testing::random_heads(problem, size, 0.5, draw), out;
        engine.hessian_product(point, testing::random_heads(problem, 1, 1, draw), out);
        EXPECT_TRUE(out.all_finite());
        if (L == 1 && std::string(activation) != "softmax-1") {
          EXPECT_LE(flatten(out).cwiseAbs().maxCoeff(), 1e-7) << "attention is 1 wherever it looks";
        }
      }
    }
  }
}

// B-softmax with nodes that were placed where the scores had fewer dimensions: the reported error
// covers what they miss, and `follow` places them anew.
TEST(FactorisedDerivatives, NewDirectionsAreNoticed) {
  for (const char* prior : testing::kAllPriors) {
    SCOPED_TRACE(prior);
    Draw draw(3);
    const Problem problem(testing::random_options("b-softmax", prior, 5, 3, 2, draw));
    const Point there = testing::random_heads(problem, 0.1, 0.1, draw);
    Point flat = there;
    flat.R.setZero();
    Point origin = flat;
    origin.m.setZero();
    Evaluation right, got;
    make_factorised(problem).evaluate(there, {}, right);
    for (const Point& start : {flat, origin}) {
      Factorised engine = make_factorised(problem);
      engine.adapt(start);
      engine.evaluate(there, {}, got);
      const double miss = std::abs(got.loss - right.loss);
      EXPECT_GT(miss, 1e-6) << "the nodes cannot see R";
      EXPECT_LE(miss, got.loss_error);
      EXPECT_TRUE(engine.follow(there));
      engine.evaluate(there, {}, got);
      EXPECT_NEAR(got.loss, right.loss, 1e-9);
      EXPECT_FALSE(engine.follow(there));
    }
  }
}

TEST(FactorisedDerivatives, BitIdenticalForAnyNumberOfThreads) {
  for (const char* activation : testing::kAllActivations) {
    for (const char* prior : {"full", "discrete"}) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      Draw draw(11);
      const Problem problem(testing::random_options(activation, prior, 6, 3, 2, draw));
      const Point point = testing::random_heads(problem, 1, 0.7, draw);
      const Point direction = testing::random_heads(problem, 1, 1, draw);
      Evaluation first, got;
      Point first_product, product;
      for (const int threads : {1, 2, 3}) {
        Factorised engine = make_factorised(problem, threads, 1e-8);
        engine.evaluate(point, {.gradient_error = true}, got);
        engine.hessian_product(point, direction, product);
        if (threads == 1) first = got, first_product = product;
        EXPECT_EQ(got.loss, first.loss);
        EXPECT_EQ(got.loss_error, first.loss_error);
        EXPECT_EQ(flatten(got.grad), flatten(first.grad));
        EXPECT_EQ(flatten(got.grad_error), flatten(first.grad_error));
        EXPECT_EQ(flatten(product), flatten(first_product));
      }
    }
  }
}

TEST(FactorisedDerivatives, InstructionSetsAgree) {
  for (const char* activation : testing::kAllActivations) {
    for (const char* prior : {"full", "discrete"}) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      Draw draw(12);
      const Problem problem(testing::random_options(activation, prior, 6, 3, 2, draw));
      const Point point = testing::random_heads(problem, 1, 0.7, draw);
      const Point direction = testing::random_heads(problem, 1, 1, draw);
      std::map<std::int64_t, Vector> all;
      // The same nodes for all: rounding may tip the choice between two plans, both good.
      Factorised engine = make_factorised(problem, 1, 1e-8);
      engine.adapt(point);
      testing::for_each_target([&](std::int64_t target) {
        Evaluation e;
        Point product;
        engine.evaluate(point, {}, e);
        engine.hessian_product(point, direction, product);
        all[target] = Vector(2 * point.size() + 1);
        all[target] << e.loss, flatten(e.grad), flatten(product);
      });
      for (const auto& [target, value] : all) {
        EXPECT_LE((value - all.begin()->second).cwiseAbs().maxCoeff(), 1e-12);
      }
      if (all.contains(HWY_AVX2) && all.contains(HWY_AVX3)) {
        EXPECT_EQ(all[HWY_AVX2], all[HWY_AVX3]) << "both have fused multiply-add: same bits";
      }
    }
  }
}

}  // namespace
}  // namespace headflow::gradient_hessian_test
