#include "expectation/factorised/path_gauge.h"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <random>

namespace headflow::path_gauge_test {
namespace {

using factorised::PathGauge;

Matrix random(Eigen::Index rows, Eigen::Index cols, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Matrix out(rows, cols);
  for (double& x : out.reshaped()) x = normal(generator);
  return out;
}

// A O has the law of A; whoever turns A changes next to nothing.
TEST(PathGauge, DependsOnTheLaw) {
  const Matrix reference = random(4, 7, 1), A = reference + 0.1 * random(4, 7, 2);
  const PathGauge gauge(reference);
  const Matrix scores = gauge.turn(A).scores;
  EXPECT_LE((scores * scores.transpose() - A * A.transpose()).cwiseAbs().maxCoeff(), 1e-13);
  const Matrix turn = Matrix(random(7, 7, 3).householderQr().householderQ());
  const double moved = (A * turn - A).cwiseAbs().maxCoeff();
  const double left = (gauge.turn(A * turn).scores - scores).cwiseAbs().maxCoeff();
  EXPECT_GE(moved, 1.0);
  EXPECT_LE(left, 5e-3);  // epsilon over the squares of singular values
  // Where it is the reference, nothing is turned, R = 0 included.
  Matrix degenerate = reference;
  degenerate.rightCols(4).setZero();
  const Matrix same = PathGauge(degenerate).turn(degenerate).scores;
  EXPECT_LE((same - degenerate).cwiseAbs().maxCoeff(), 1e-13);
}

TEST(PathGauge, Derivatives) {
  const Matrix reference = random(4, 7, 1), A = reference + 0.3 * random(4, 7, 2);
  const PathGauge gauge(reference);
  const auto here = gauge.turn(A);
  const Matrix dA = random(4, 7, 5), dB = random(4, 7, 6), bar = random(4, 7, 7);
  const double step = 1e-5;
  const Matrix difference =
      (gauge.turn(A + step * dA).scores - gauge.turn(A - step * dA).scores) / (2 * step);
  EXPECT_LE((gauge.tangent(here, dA) - difference).cwiseAbs().maxCoeff(), 1e-8);
  const double forward = bar.cwiseProduct(gauge.tangent(here, dA)).sum();
  const double backward = gauge.pull_back(here, bar).cwiseProduct(dA).sum();
  EXPECT_NEAR(forward, backward, 1e-12 * std::abs(forward) + 1e-12);
  const Matrix slope = (gauge.pull_back(gauge.turn(A + step * dA), bar) -
                        gauge.pull_back(gauge.turn(A - step * dA), bar)) /
                       (2 * step);
  EXPECT_LE((gauge.pull_back_slope(here, bar, dA) - slope).cwiseAbs().maxCoeff(), 1e-8);
  // Second derivatives are symmetric.
  const double ab = gauge.pull_back_slope(here, bar, dA).cwiseProduct(dB).sum();
  const double ba = gauge.pull_back_slope(here, bar, dB).cwiseProduct(dA).sum();
  EXPECT_NEAR(ab, ba, 1e-12);
  EXPECT_GE(std::abs(ab), 1e-2);
}

TEST(PathGauge, RecentredItIsTheSameThere) {
  PathGauge gauge(random(4, 7, 1));
  const Matrix A = random(4, 7, 1) + 0.3 * random(4, 7, 2);
  const Matrix before = gauge.turn(A).scores;
  gauge.recentre(A);
  EXPECT_LE((gauge.turn(A).scores - before).cwiseAbs().maxCoeff(), 5e-3);
}

}  // namespace
}  // namespace headflow::path_gauge_test
