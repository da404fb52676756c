#include "analysis/growth.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/effort.h"
#include "support/problems.h"

namespace headflow::growth_test {
namespace {

TEST(Growth, ClosedFormsAgainstFourthOrderDifferences) {
  int number = 0;
  for (const int L : {2, 3, 4, 10, 40}) {
    for (const int H : {3, 4}) {
      for (const auto& [W, V] : {std::pair{2.0, 1.0}, std::pair{0.5, 3.0}}) {
        if (testing::left_out(number++, 5)) continue;
        SCOPED_TRACE(fmt::format("L {} H {} V {} W {}", L, H, V, W));
        ProblemOptions options = testing::problem_options("softmax", "gaussian", L, H, 2);
        options.prior_parameters["nu"] = testing::row({W, V});
        EngineOptions exact = testing::engine_options(0, 1);
        exact.engine = EngineName::factorised;
        exact.tolerance = 1e-11;
        const auto engine = make_engine(Problem(options), exact);
        Vector u(H);
        for (int h = 0; h < H; ++h) u[h] = std::cos(1.0 + 2 * h);
        u.array() -= u.mean();
        const SpecialisationConstants c = specialisation_constants(L, H, V, W);
        const MeasuredGrowth measured = measure_growth(*engine, u);
        const double scale = c.c3 + std::abs(c.c2);
        EXPECT_LT(measured.misfit, 1e-5 * scale + 5e-7);
        const Matrix P = Matrix::Identity(H, H) - Matrix::Constant(H, H, 1.0 / H);
        const Matrix expected = c.c1 * u.squaredNorm() * P +
                                c.c2 * P * u.cwiseAbs2().asDiagonal() * P +
                                c.c3 * u * u.transpose();
        EXPECT_LT((measured.second_order - expected).cwiseAbs().maxCoeff(), 1e-5 * scale + 5e-7);
        if (H == 4) {  // three heads do not tell c1 from c2 and c3
          EXPECT_NEAR(measured.c.c1, c.c1, 1e-5 * scale + 1e-6);
          EXPECT_NEAR(measured.c.c2, c.c2, 1e-5 * scale + 1e-6);
          EXPECT_NEAR(measured.c.c3, c.c3, 1e-5 * scale + 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace headflow::growth_test
