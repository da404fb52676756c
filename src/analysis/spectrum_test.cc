#include "analysis/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/fixed_point.h"
#include "core/error.h"
#include "model/formula_activation.h"
#include "support/problems.h"

namespace headflow::spectrum_test {
namespace {

Problem problem() {
  ProblemOptions options = testing::problem_options("softmax-1", "gaussian", 5, 3, 2);
  options.prior_parameters["nu"] = testing::row({8.0, 2.0});
  return Problem(options);
}

TEST(Spectrum, GroupsEqualEigenvaluesAndFindsTheirClosedForms) {
  const Problem p = problem();
  const Spectrum found = spectrum(p, {}, origin(p));
  EXPECT_TRUE(found.at_origin);
  EXPECT_LT(found.error, 1e-6);
  EXPECT_EQ(found.error_kind, ErrorKind::refinement);
  int all = 0;
  for (const Eigenspace& space : found.spaces) {
    all += space.multiplicity;
    if (space.shape.of_blocks() > 0.5) {
      EXPECT_FALSE(space.closed_form);
    } else {
      ASSERT_TRUE(space.closed_form);
      EXPECT_NEAR(*space.closed_form, space.eigenvalue, 1e-6);
    }
  }
  EXPECT_EQ(all, found.h.eigenvalues.size());
  // The most unstable: feature 1, across heads, H - 1 of them.
  EXPECT_EQ(found.spaces[0].multiplicity, 2);
  EXPECT_EQ(found.spaces[0].shape.text(), "m, across heads, feature 1");
  EXPECT_EQ(found.escape_rate(), -found.h.eigenvalues[0]);
  EXPECT_NEAR(found.parting_time(1e4), std::log(1e4) / (2 * found.escape_rate()), 1e-12);
}

// With an error that is too large what is different counts as equal, and nothing is known to grow.
TEST(Spectrum, TheErrorDecidesWhatIsEqual) {
  const Problem p = problem();
  Spectrum found = spectrum(p, {}, origin(p));
  EXPECT_LT(eigenspaces(found.h, 10.0).size(), 2u);
  EXPECT_EQ(eigenspaces(found.h, found.error).size(), found.spaces.size());
  found.error = found.escape_rate();
  EXPECT_TRUE(std::isinf(found.parting_time(1e4)));
}

TEST(Spectrum, CoordinatesHaveNames) {
  ProblemOptions options = testing::problem_options("softmax-1", "gaussian", 5, 2, 1);
  options.train = {{"m", "b", "v"}};
  const Problem p(options);
  const Spectrum found = spectrum(p, {}, origin(p));
  EXPECT_EQ(coordinate_names(found.h),
            (std::vector<std::string>{"m[1,1]", "m[2,1]", "b[1]", "b[2]", "v"}));
}

TEST(Spectrum, SamplesAreHeldAgainstOtherSamples) {
  const Problem p(testing::problem_options("softmax", "gaussian", 4, 2, 1));
  EngineOptions sampled = testing::engine_options(20'000, 1);
  sampled.engine = EngineName::mc;
  const Point point = testing::random_point(p, 2, 0.5);
  const Spectrum rough = spectrum(p, sampled, point), exact = spectrum(p, {}, point);
  EXPECT_EQ(rough.error_kind, ErrorKind::other_samples);
  // Both are off by independent errors of the same size: within six times their difference.
  const double off = (rough.h.matrix - exact.h.matrix).cwiseAbs().maxCoeff();
  EXPECT_LT(off, 6 * rough.error);
  EXPECT_GT(off, exact.error);
}

struct ReluFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* /*parameters*/, S* sigma) const {
    using std::max;
    for (int i = 0; i < n.H * n.L; ++i) sigma[i] = max(chi[i], 0.0);
  }
};
class Relu final : public FormulaActivation<ReluFormula> {
 public:
  std::string_view name() const override { return "relu"; }
  std::string_view formula() const override { return "max(chi_hl, 0)"; }
  bool smooth() const override { return false; }
};

// E Sum (delta - mean)^2 is smooth in m, but its second derivatives are not the means of those of
// samples: nothing is better than a wrong Hessian.
TEST(Spectrum, KinksHaveNoSecondDerivatives) {
  const Problem smooth = problem();
  const ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, 2, 2);
  const Problem kinked(std::make_shared<Relu>(),
                       Problem(options).prior_times(Matrix::Identity(2, 2)), options);
  EngineOptions sampled = testing::engine_options(1'000, 1);
  sampled.engine = EngineName::mc;
  EXPECT_THROW(spectrum(kinked, sampled, testing::random_point(kinked, 1)), Error);
  EXPECT_THROW(find_fixed_point(kinked, sampled, testing::random_point(kinked, 1), {}), Error);
  EXPECT_NO_THROW(check_second_derivatives(smooth));
}

}  // namespace
}  // namespace headflow::spectrum_test
