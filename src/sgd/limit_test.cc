// The limits of SGD by name, and that SGD at a finite learning rate is centred on its map, not on
// gradient flow.

#include "sgd/limit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "support/effort.h"
#include "support/problems.h"

namespace headflow::limit_test {
namespace {

TEST(Limit, NamesAreChecked) {
  EXPECT_EQ(checked_limits({LimitKind::map, LimitKind::flow, LimitKind::map}),
            (std::vector<LimitKind>{LimitKind::map, LimitKind::flow}));
  EXPECT_THROW(checked_limits({}), OptionError);
  EXPECT_EQ(from_name<LimitKind>("compare.theory", "first-order"), LimitKind::first_order);
  for (const char* text : {"kapa", "", "maps", "flow;map", "k appa"}) {
    EXPECT_THROW(from_name<LimitKind>("compare.theory", text), OptionError) << text;
  }
}

// The gradient is that without samples, bit for bit; the second moments are those of the samples.
TEST(Limit, OnlySecondMomentsAreSampled) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 4, 2, 2));
  const Point point = testing::random_point(problem, 5);
  FlowOptions flow;
  flow.kappa = 0.02;
  EngineOptions options;
  const auto both = make_flow_engine(problem, options, flow, point);
  EXPECT_EQ(both->name(), "factorised+qmc");
  ASSERT_TRUE(both->has_second_moment());
  options.engine = EngineName::factorised;
  const auto exact = make_engine(problem, options);
  options.engine = EngineName::qmc;
  options.samples = both->samples();
  const auto sampled = make_engine(problem, options);
  Evaluation a, b, c;
  exact->adapt(point);
  both->adapt(point);
  both->evaluate(point, {.second_moment = true}, a);
  exact->evaluate(point, {}, b);
  sampled->evaluate(point, {.second_moment = true}, c);
  EXPECT_EQ(testing::flatten(a.grad), testing::flatten(b.grad));
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.second_moment, c.second_moment);
}

// Halving gamma quarters what the flow of first order lacks, and halves what the kappa flow lacks.
TEST(Limit, FirstOrderIsTheMapButForSquaresOfTheRate) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 4, 2, 2));
  const SgdState start = state_with(Matrix::Identity(2, 2), testing::random_point(problem, 3, 0.7));
  EngineOptions engine;
  engine.engine = EngineName::factorised;
  engine.tolerance = 1e-7;
  engine.samples = 256;
  // Distances of first-order and kappa from the map at tau = 1.
  const auto distances = [&](double gamma) {
    SgdOptions sgd;
    sgd.dim = sgd.batch = 1000;
    sgd.lr = gamma;
    const std::vector<std::int64_t> steps = {0, std::llround(1 / gamma)};
    const auto end = [&](LimitKind which) {
      const Limit limit = make_limit(problem, engine, sgd, start, steps, {which, 1e-7, 1e-9});
      Trajectory run;
      integrate_flow(*limit.engine, limit.start, limit.flow, run);
      const Point& last = run.point.back();
      Vector out(9);
      out << last.m.reshaped(), last.q().reshaped(), last["v"];
      return out;
    };
    const Vector map = end(LimitKind::map);
    return std::pair{(end(LimitKind::first_order) - map).norm(),
                     (end(LimitKind::kappa) - map).norm()};
  };
  const auto coarse = distances(0.25), fine = distances(0.125);
  EXPECT_NEAR(std::log2(coarse.first / fine.first), 2.0, 0.35);
  EXPECT_NEAR(std::log2(coarse.second / fine.second), 1.0, 0.35);
}

struct Mean {
  Vector mean, error;
};

/// (m, q, b, v), the trace of q last.
Vector numbers(const Matrix& m, const Matrix& q, const Blocks& blocks) {
  Vector out(m.size() + q.size() + blocks.size() + 1);
  out << m.reshaped(), q.reshaped(), blocks.values(), q.trace();
  return out;
}

Mean mean_over_runs(const std::vector<std::vector<SgdRecord>>& recorded) {
  const auto n = static_cast<double>(recorded.size());
  Vector sum, squares;
  for (const auto& run : recorded) {
    const SgdState& s = run.back().state;
    const Vector x = numbers(s.m(), s.q(), s.blocks);
    if (sum.size() == 0) sum = squares = Vector::Zero(x.size());
    sum += x;
    squares += x.cwiseAbs2();
  }
  const Vector mean = sum / n;
  return {mean, ((squares / n - mean.cwiseAbs2()) / (n - 1)).cwiseSqrt()};
}

// 24 runs from one start, lr = 0.2, batch = D = 1000. False alarms: 12 numbers at 4 standard errors
// of 24 runs, Student's t: 12 x 6e-4 = 0.7 %, for this seed none. Control: gradient flow.
TEST(Limit, SgdIsCentredOnTheMapNotOnTheFlow) {
  const Problem problem(testing::problem_options("softmax-1", "flipping", 5, 2, 2));
  Point at = problem.start_point();  // b = 0, v = 1
  at.m << 0.5, 0.3, 0.4, -0.2;
  at.R << 1.0, 0.0, 0.1, 0.9;
  const SgdState start = state_with(Matrix::Identity(2, 2), at);
  SgdOptions sgd;
  sgd.dim = 1000;
  sgd.batch = 1000;
  sgd.lr = 0.2;
  sgd.steps = 30;
  sgd.outputs = 1;
  sgd.runs = 24;
  Sgd runs(problem, sgd, 7, std::vector<SgdState>(24, start), Context::threads(0));
  while (!runs.finished()) runs.advance();
  const Mean of_sgd = mean_over_runs(runs.recorded());
  EngineOptions engine;
  engine.engine = EngineName::factorised;
  engine.samples = 1 << 14;
  const auto scores = [&](LimitKind kind) -> Vector {
    const Limit limit = make_limit(problem, engine, sgd, start, {0, 30}, {.kind = kind});
    Trajectory run;
    integrate_flow(*limit.engine, limit.start, limit.flow, run);
    const Point end = limit.problem.frame().leave(run.point.back());
    const Vector off = of_sgd.mean - numbers(end.m, run.point.back().q(), end.blocks);
    return off.cwiseQuotient(of_sgd.error);
  };
  const Vector map = scores(LimitKind::map), first = scores(LimitKind::first_order),
               flow = scores(LimitKind::flow);
  EXPECT_LT(first.cwiseAbs().maxCoeff(), 5) << first.transpose();  // it lacks terms in gamma^2
  EXPECT_LT(map.cwiseAbs().maxCoeff(), 4) << map.transpose();
  EXPECT_GT(flow.cwiseAbs().maxCoeff(), 6) << flow.transpose();
}

}  // namespace
}  // namespace headflow::limit_test
