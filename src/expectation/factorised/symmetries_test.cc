// Lemmas A.1 to A.3 of the paper to the precision of the factorised engine: lemmas_test.cc has them
// within the errors of Monte Carlo.

#include <gtest/gtest.h>

#include "expectation/factorised/factorised.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/random_problems.h"

namespace headflow::symmetries_test {
namespace {

using testing::Draw;
using testing::flatten;

constexpr double kClose = 1e-8;

std::vector<const char*> priors() {
  if (testing::effort() != testing::Effort::full) return {"mixture"};
  return {std::begin(testing::kAllPriors), std::end(testing::kAllPriors)};
}

Evaluation evaluate(const Problem& problem, const Point& point) {
  EngineOptions options = testing::engine_options(0, 1);
  options.tolerance = 1e-9;
  Factorised engine(problem, options);
  Evaluation e;
  engine.evaluate(point, {}, e);
  return e;
}

// A.1: on the manifold of identical heads, m_h = m~, R = r1 I + r2 11^T, b_h = b~, so is the
// gradient.
TEST(FactorisedSymmetries, UnspecialisedManifoldIsInvariant) {
  int number = 0;
  for (const char* activation : testing::kAllActivations) {
    for (const char* prior : priors()) {
      for (const int L : {2, 300}) {
        for (const double r : {0.0, 0.6}) {
          if (testing::left_out(number++, 3)) continue;
          SCOPED_TRACE(fmt::format("{} {} L {} r {}", activation, prior, L, r));
          Draw draw(static_cast<std::uint64_t>(L));
          const int H = 3, F = 2;
          const Problem problem(testing::random_options(activation, prior, L, H, F, draw));
          Point point = problem.zero_point();
          point.m = Vector::Ones(H) * 0.7 * draw.normals(1, F);
          point.R = r * (Matrix::Identity(H, H) + 0.3 * Matrix::Ones(H, H));
          testing::set_block(point, "b", draw.normal());
          testing::set_block(point, "v", 1.2);
          const Evaluation e = evaluate(problem, point);
          const Matrix& R = e.grad.R;
          for (int h = 1; h < H; ++h) {
            EXPECT_LE((e.grad.m.row(h) - e.grad.m.row(0)).cwiseAbs().maxCoeff(), kClose);
            EXPECT_NEAR(testing::b_of(e.grad)[h], testing::b_of(e.grad)[0], kClose);
            EXPECT_NEAR(R(h, h), R(0, 0), kClose);
            for (int k = 0; k < h; ++k) {
              EXPECT_NEAR(R(h, k), R(0, 1), kClose);
              EXPECT_NEAR(R(k, h), R(0, 1), kClose);
            }
          }
          if (point.blocks.has("b")) point["b"][1] += 0.1;
          point.m(1, 0) += 0.1;
          const Point off = evaluate(problem, point).grad;
          EXPECT_GT((off.m.row(1) - off.m.row(0)).cwiseAbs().maxCoeff(), 1e-6) << "control";
        }
      }
    }
  }
}

// Permuted heads permute the gradient; a rotated basis of R leaves the loss alone and rotates
// the gradient; B-softmax does not feel a common shift of the biases.
TEST(FactorisedSymmetries, PermutationsRotationsShifts) {
  for (const char* activation : testing::kAllActivations) {
    for (const char* prior : priors()) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      Draw draw(5);
      const int H = 3, F = 2;
      const Problem problem(testing::random_options(activation, prior, 6, H, F, draw));
      const Point point = testing::random_heads(problem, 0.8, 0.6, draw);
      const Evaluation e = evaluate(problem, point);
      const auto expect_same = [&](const Evaluation& got, const Point& grad) {
        EXPECT_NEAR(got.loss, e.loss, kClose);
        EXPECT_LE((flatten(got.grad) - flatten(grad)).cwiseAbs().maxCoeff(), kClose);
      };
      Matrix P = Matrix::Zero(H, H), Q = Matrix::Identity(H, H);
      P(0, 2) = P(1, 0) = P(2, 1) = 1;
      Q.topLeftCorner(2, 2) << 0.6, -0.8, 0.8, 0.6;
      const auto transform = [&](const Point& x, const Matrix& left, const Matrix& right) {
        Point out{left * x.m, left * x.R * right, x.blocks};
        if (x.blocks.has("b")) out["b"] = left * x["b"];
        return out;
      };
      const Matrix I = Matrix::Identity(H, H);
      expect_same(evaluate(problem, transform(point, P, I)), transform(e.grad, P, I));
      expect_same(evaluate(problem, transform(point, I, Q)), transform(e.grad, I, Q));
      if (std::string(activation) == "b-softmax") {
        Point shifted = point;
        shifted["b"].array() += 1.7;
        expect_same(evaluate(problem, shifted), e.grad);
        EXPECT_NEAR(e.grad["b"].sum(), 0.0, kClose);
      }
    }
  }
}

// A.3: E depends on R R^T only, so that its gradient in R vanishes at R = 0; here exactly.
TEST(FactorisedSymmetries, GradientInRVanishesAtZero) {
  int number = 0;
  for (const char* activation : testing::kAllActivations) {
    for (const char* prior : priors()) {
      for (const double size : {0.0, 0.3, 1.5}) {
        if (testing::left_out(number++, 2)) continue;
        SCOPED_TRACE(fmt::format("{} {} |m| {}", activation, prior, size));
        Draw draw(6);
        const Problem problem(testing::random_options(activation, prior, 6, 3, 2, draw));
        const Point point = testing::random_heads(problem, size, 0.0, draw);
        EXPECT_EQ(evaluate(problem, point).grad.R, Matrix(Matrix::Zero(3, 3)));
      }
    }
  }
}

}  // namespace
}  // namespace headflow::symmetries_test
