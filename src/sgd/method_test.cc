// One step of both methods: loss and gradient against automatic differentiation of the definition,
// with the random numbers that the step has drawn; and reproducibility.

#include "sgd/method.h"

#include <gtest/gtest.h>

#include "core/aligned.h"
#include "core/error.h"
#include "sgd/lane_grams.h"
#include "support/problems.h"
#include "support/reference_model.h"

namespace headflow::method_test {
namespace {

using testing::b_of;
using testing::v_of;

constexpr std::uint64_t kSeed = 5;
const Workers kOneThread;

/// |x_0 - sum_l mean_l x_l|^2 / D with chi_h = k_h . x_l, and its gradient in (k, b, v).
struct Explicit {
  double loss;
  Matrix k;
  Vector b;
  double v;
};

Explicit differentiate(const std::string& activation, const Matrix& x, const Matrix& k,
                       const Vector& b, double v, double D) {
  using Dual = Eigen::AutoDiffScalar<Vector>;
  const Eigen::Index H = k.rows(), K = k.cols(), L = x.rows(), n = H * K + H + 1;
  testing::Grid<Dual> chi(static_cast<std::size_t>(H));
  std::vector<Dual> bias;
  for (Eigen::Index h = 0; h < H; ++h) {
    for (Eigen::Index l = 0; l < L; ++l) {
      Dual sum(0.0, Vector::Zero(n));
      for (Eigen::Index j = 0; j < K; ++j) sum = sum + Dual(k(h, j), n, h * K + j) * x(l, j);
      chi[static_cast<std::size_t>(h)].push_back(sum);
    }
    bias.emplace_back(b[h], n, H * K + h);
  }
  const auto sigma = testing::sigma(activation, chi, bias, Dual(v, n, n - 1));
  Dual loss(0.0, Vector::Zero(n));
  for (Eigen::Index j = 0; j < K; ++j) {
    Dual residual(x(0, j), Vector::Zero(n));
    for (Eigen::Index l = 0; l < L; ++l) {
      for (const auto& head : sigma) {
        residual = residual - head[static_cast<std::size_t>(l)] * (x(l, j) / double(H));
      }
    }
    loss = loss + residual * residual;
  }
  const Vector g = loss.derivatives() / D;
  return {loss.value() / D, Eigen::Map<const Matrix>(g.data(), H, K), g.segment(H * K, H),
          g[n - 1]};
}

SgdState bent(const Problem& problem, std::int64_t D) {
  SgdState state = initial_state(problem, D, 3, 0);
  if (state.blocks.has("b")) state.blocks["b"].setLinSpaced(-0.3, 0.4);
  if (state.blocks.has("v")) state.blocks["v"][0] = 1.2;
  return state;
}

Vector signal(const Problem& problem, std::uint64_t sample) {
  RandomStream choice({kSeed, Purpose::sgd_signal_choice, 0}, sample),
      normals({kSeed, Purpose::sgd_signal, 0}, sample);
  Vector z(problem.F()), theta(problem.F());
  for (double& value : z) value = normals.normal();
  problem.prior().sample(choice.uniform(), z.data(), theta.data());
  return theta;
}

TEST(SgdStep, DirectAgreesWithAutomaticDifferentiation) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    for (const char* prior : {"flipping", "gaussian"}) {
      SCOPED_TRACE(fmt::format("{} {}", activation, prior));
      const int L = 4, H = 3, F = 2, D = 11, stride = 16;
      const Problem problem(testing::problem_options(activation, prior, L, H, F));
      const SgdState start = bent(problem, D);
      const auto sgd = make_direct(problem, {D, 1, 1.0, kSeed, 0}, start, kOneThread);
      const BatchLoss loss = sgd->step(0);
      Matrix x(L, stride), k = Matrix::Zero(H, D);
      fill_normals({kSeed, Purpose::sgd_noise, 0}, 0, L * stride / kLanes, x.data());
      Matrix tokens = x.leftCols(D);
      tokens.row(0).head(F) += start.C.transpose() * signal(problem, 0);
      k.leftCols(F) = start.U;
      k.middleCols(F, H) = start.Lambda;
      const Explicit want = differentiate(activation, tokens, k, b_of(start), v_of(start), D);
      EXPECT_NEAR(loss.mean, want.loss, 1e-12);
      const SgdState after = sgd->state();
      const Matrix moved = k - want.k;
      EXPECT_LE((after.m() - moved.leftCols(F) * start.C.transpose()).cwiseAbs().maxCoeff(), 1e-12);
      EXPECT_LE((after.q() - moved * moved.transpose()).cwiseAbs().maxCoeff(), 1e-12);
      if (after.blocks.has("b")) {
        EXPECT_LE((b_of(after) - (b_of(start) - want.b)).cwiseAbs().maxCoeff(), 1e-12);
      }
      if (after.blocks.has("v")) {
        EXPECT_NEAR(v_of(after), v_of(start) - want.v, 1e-12);
      }
    }
  }
}

// All tokens have one axis of their own beyond the basis: its coordinates are made again here from
// the same random numbers. Beyond it the step is random still, which shows only in q.
TEST(SgdStep, ReducedAgreesWithAutomaticDifferentiation) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    for (const char* prior : {"flipping", "discrete"}) {
      for (const int D : {7, 40, 1'000'000}) {
        SCOPED_TRACE(fmt::format("{} {} D {}", activation, prior, D));
        const int L = 4, H = 3, F = 2;
        const bool exact = D == 7;  // two dimensions beyond: drawn as they are
        const int axes = exact ? 0 : 1, columns = exact ? D : F + H;
        const Problem problem(testing::problem_options(activation, prior, L, H, F));
        const SgdState start = bent(problem, D);
        const double rate = D;  // the gradient is of order 1/D
        const auto sgd = make_reduced(problem, {D, 1, rate, kSeed, 0}, start, kOneThread);
        const BatchLoss loss = sgd->step(0);

        AlignedVector x(static_cast<std::size_t>(L * (columns + axes) * kLanes));
        fill_normals({kSeed, Purpose::sgd_noise, 0}, 0, L * (columns + axes), x.data());
        Matrix tokens(L, columns + axes), k = Matrix::Zero(H, columns + axes);
        for (int l = 0; l < L; ++l) {
          for (int j = 0; j < columns; ++j) {
            tokens(l, j) = x[static_cast<std::size_t>((l * columns + j) * kLanes)];
          }
          if (axes > 0)
            tokens(l, columns) = x[static_cast<std::size_t>((L * columns + l) * kLanes)];
        }
        tokens.row(0).head(F) += start.C.transpose() * signal(problem, 0);
        k.leftCols(F) = start.U;
        k.middleCols(F, H) = start.Lambda;
        if (axes > 0) {  // X_perp^T w^ = u, whatever w is
          testing::Grid<double> chi(H, std::vector<double>(L));
          for (int h = 0; h < H; ++h) {
            for (int l = 0; l < L; ++l) {
              chi[std::size_t(h)][std::size_t(l)] =
                  k.row(h).head(columns).dot(tokens.row(l).head(columns));
            }
          }
          const Vector b = b_of(start);
          const auto sigma = testing::sigma(activation, chi, {b.begin(), b.end()}, v_of(start));
          Vector w = Vector::Unit(L, 0);
          for (const auto& head : sigma) {
            for (int l = 0; l < L; ++l) w[l] -= head[std::size_t(l)] / H;
          }
          w.normalize();
          AlignedVector normal(kLanes), uniform(kLanes), u(kLanes);
          fill_normals({kSeed, Purpose::sgd_chunk, 0}, 0, 1, normal.data());
          fill_uniforms({kSeed, Purpose::sgd_chunk_choice, 0}, 0, 1, uniform.data());
          lane_chi({kSeed, Purpose::sgd_retry, 0}, {0, 0}, D - F - H, normal.data(), uniform.data(),
                   u.data());
          const double shift = u[0] - w.dot(tokens.col(columns));
          tokens.col(columns) += shift * w;
        }
        const Explicit want = differentiate(activation, tokens, k, b_of(start), v_of(start), D);
        EXPECT_NEAR(loss.mean, want.loss, 1e-12 * std::max(1.0, want.loss));
        const SgdState after = sgd->state();
        const Matrix moved = k - rate * want.k;
        const double scale = std::max(1.0, moved.cwiseAbs().maxCoeff());
        EXPECT_LE((after.m() - moved.leftCols(F) * start.C.transpose()).cwiseAbs().maxCoeff(),
                  1e-12 * scale);
        if (exact) {
          EXPECT_LE((after.q() - moved * moved.transpose()).cwiseAbs().maxCoeff(),
                    1e-12 * scale * scale);
        }
        if (after.blocks.has("b")) {
          EXPECT_LE((b_of(after) - (b_of(start) - rate * want.b)).cwiseAbs().maxCoeff(),
                    1e-12 * scale);
        }
        if (after.blocks.has("v")) {
          EXPECT_NEAR(v_of(after), v_of(start) - rate * want.v, 1e-12 * scale);
        }
      }
    }
  }
}

TEST(SgdStep, BitIdenticalForAnyNumberOfThreadsAndAfterARestart) {
  for (const auto make : {make_reduced, make_direct}) {
    const Problem problem(testing::problem_options("softmax-1", "gaussian", 5, 3, 2));
    const SgdSetting setting{40, 3000, 0.5, 9, 2};
    const SgdState start = initial_state(problem, 40, 1, 0);
    std::vector<double> first;
    for (const int threads : {1, 2, 3}) {
      const Workers workers(Context::threads(threads));
      const auto sgd = make(problem, setting, start, workers);
      sgd->step(0);
      const std::vector<double> between = sgd->save();
      sgd->step(1);
      const auto again = make(problem, setting, start, workers);
      again->restore(between);
      again->step(1);
      EXPECT_EQ(again->save(), sgd->save());
      if (threads == 1) first = sgd->save();
      EXPECT_EQ(sgd->save(), first);
    }
    SgdSetting other = setting;
    other.run = 3;
    const auto sgd = make(problem, other, start, kOneThread);
    sgd->step(0);
    sgd->step(1);
    EXPECT_NE(sgd->save(), first);
  }
}

TEST(SgdStep, TheStartHasTheLawOfOverlaps) {
  // E q_hh = eta^2, E p_ff = 1, Var m_hf = eta^2 / D over many runs: |z| < 5 each, 1e-5 together.
  ProblemOptions options = testing::problem_options("softmax", "flipping", 3, 2, 2);
  options.eta = 0.5;
  const Problem problem(options);
  const int D = 50, runs = 4000;
  double q = 0, p = 0, m2 = 0;
  for (std::uint32_t run = 0; run < runs; ++run) {
    const SgdState state = initial_state(problem, D, 1, run);
    q += state.q()(1, 1) / runs;
    p += state.p()(1, 1) / runs;
    m2 += state.m()(1, 0) * state.m()(1, 0) / runs;
  }
  const double spread = std::sqrt(2.0 / D / runs);
  EXPECT_NEAR(q, 0.25, 5 * 0.25 * spread);
  EXPECT_NEAR(p, 1.0, 5 * spread);
  EXPECT_NEAR(m2, 0.25 / D, 5 * 0.25 / D * std::sqrt(2.5 / runs));
}

TEST(SgdStep, TooFewDimensionsAreAnError) {
  const Problem problem(testing::problem_options("softmax", "flipping", 3, 2, 2));
  const SgdState start = initial_state(problem, 10, 1, 0);
  EXPECT_THROW(make_reduced(problem, {3, 10, 0.1, 1, 0}, start, kOneThread), OptionError);
  EXPECT_THROW(make_direct(problem, {3, 10, 0.1, 1, 0}, start, kOneThread), OptionError);
}

}  // namespace
}  // namespace headflow::method_test
