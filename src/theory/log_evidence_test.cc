#include "theory/log_evidence.h"

#include <gtest/gtest.h>

#include "core/aligned.h"
#include "core/lanes.h"
#include "model/problem.h"
#include "support/problems.h"

namespace headflow::log_evidence_test {
namespace {

// Eight samples at once, more tokens than are in flight, as one by one.
TEST(LogEvidence, LanewiseIsTheSame) {
  constexpr int kTokens = 70, kF = 3;
  for (const char* name : {"flipping", "discrete", "full", "mixture"}) {
    const Problem problem(testing::problem_options("softmax", name, 4, 2, kF));
    const LogEvidence evidence(*problem.prior().mixture());
    const Matrix numbers = 5 * testing::random_matrix(kTokens * kF, kLanes, 9);
    AlignedVector chi(numbers.data(), numbers.data() + numbers.size());
    AlignedVector scratch(evidence.scratch_groups(kTokens) * kLanes), out(kTokens * kLanes);
    evidence.lanewise(chi.data(), kTokens, scratch.data(), out.data());
    for (int l = 0; l < kTokens; ++l) {
      for (int i = 0; i < kLanes; ++i) {
        const Vector one = numbers.block(l * kF, i, kF, 1);
        EXPECT_NEAR(lanes(out.data(), l)[i], evidence(one), 1e-12) << name;
      }
    }
  }
}

// A component of weight 0 does not matter.
TEST(LogEvidence, NothingOfWeightZero) {
  const Vector mean = Vector::Constant(1, 2.0);
  const Matrix atom(1, 0);
  const LogEvidence with(GaussianMixture({{0.0, -mean, atom}, {1.0, mean, atom}}));
  const Vector chi = Vector::Constant(1, -300.0);
  EXPECT_NEAR(with(chi), 2.0 * -300 - 2, 1e-12);
}

}  // namespace
}  // namespace headflow::log_evidence_test
