#include "dynamics/stoppable_lu.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "support/problems.h"
#include "support/stop.h"

namespace headflow::stoppable_lu_test {
namespace {

struct Case {
  explicit Case(int n)
      : matrix(testing::random_matrix(n, n, 7)), right(testing::random_matrix(n, 1, 8)) {
    for (int j = 0; j < n; ++j) columns.push_back(copy.col(j).data());
  }
  Eigen::MatrixXd matrix, copy = matrix;
  Eigen::VectorXd right;
  std::vector<double*> columns;
  std::vector<std::size_t> pivots;
  std::size_t n() const { return columns.size(); }
};

TEST(StoppableLu, SolvesAsEigenDoes) {
  for (const int n : {1, 2, 7, 40}) {
    Case one(n);
    if (n == 7) one.copy(0, 0) = one.matrix(0, 0) = 0;  // a pivot that must be exchanged
    ASSERT_EQ(factorise(one.n(), one.columns.data(), one.pivots, {}), LuOutcome::done);
    Eigen::VectorXd x = one.right;
    solve_factorised(one.n(), one.columns.data(), one.pivots, x.data());
    const Eigen::VectorXd wanted = one.matrix.fullPivLu().solve(one.right);
    EXPECT_LT((x - wanted).norm(), 1e-11 * wanted.norm() * n) << n;
  }
}

TEST(StoppableLu, StopsAndSeesSingularMatrices) {
  Case one(30);
  std::atomic<int> asked = 0;
  EXPECT_EQ(factorise(one.n(), one.columns.data(), one.pivots, testing::stopped_after(asked, 10)),
            LuOutcome::stopped);
  EXPECT_EQ(asked, 10);
  Case flat(4);
  flat.copy.col(2).setZero();
  EXPECT_EQ(factorise(flat.n(), flat.columns.data(), flat.pivots, {}), LuOutcome::singular);
}

}  // namespace
}  // namespace headflow::stoppable_lu_test
