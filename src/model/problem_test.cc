#include "model/problem.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/problems.h"

namespace headflow::problem_test {
namespace {

using testing::problem_options;
using testing::row;

ProblemOptions good() { return problem_options("softmax", "flipping", 4, 2, 2); }

/// The message for options changed by `change`; it must name the key.
template <class Change>
std::string complaint(const char* key, const Change& change) {
  ProblemOptions options = good();
  change(options);
  try {
    const Problem problem(options);
  } catch (const OptionError& e) {
    EXPECT_EQ(e.key(), key);
    return e.what();
  }
  return "accepted";
}

TEST(Problem, GoodOneIsAccepted) {
  const Problem problem(good());
  EXPECT_EQ(problem.L(), 4);
  EXPECT_EQ(problem.activation().name(), "softmax");
  EXPECT_TRUE(problem.notes().empty());
}

TEST(Problem, MessagesNameKeyValueAndRule) {
  EXPECT_EQ(complaint("problem.heads", [](auto& o) { o.heads = 0; }),
            "problem.heads = 0: must be from 1 to 256");
  EXPECT_EQ(complaint("problem.nu",
                      [](auto& o) {
                        o.prior_parameters["nu"] = row({-1.0, 2.0});
                      }),
            "problem.nu = [-1, 2]: signal strengths must be finite and not negative");
  std::vector<std::string> names;
  for (const auto& one : activations()) names.push_back(fmt::format("\"{}\"", one->name()));
  EXPECT_EQ(complaint("problem.activation", [](auto& o) { o.activation = "sofmax"; }),
            fmt::format("problem.activation = \"sofmax\": must be one of {} (did you mean "
                        "\"softmax\"?)",
                        fmt::join(names, ", ")));
  EXPECT_EQ(complaint("problem.eta", [](auto& o) { o.eta = -1; }),
            "problem.eta = -1: must be finite and not negative");
}

TEST(Problem, EveryRuleIsChecked) {
  const auto discrete = [](auto& o) {
    o.prior = "discrete";
    o.prior_parameters.clear();
    o.prior_parameters["points"] = Matrix::Ones(2, 2);
  };
  const auto rejected = [](const char* key, const auto& change) {
    EXPECT_NE(complaint(key, change), "accepted") << key;
  };
  rejected("problem.weigths", [](auto& o) { o.prior_parameters["weigths"] = row({0.5, 0.5}); });
  rejected("problem.tokens", [](auto& o) { o.tokens = 0; });
  rejected("problem.tokens", [](auto& o) { o.tokens = 10'000'000; });
  rejected("problem.features", [](auto& o) { o.features = -3; });
  rejected("problem.features", [](auto& o) { o.features = 1; });  // flipping needs two
  rejected("problem.prior", [](auto& o) { o.prior = "spike"; });
  rejected("problem.nu", [](auto& o) { o.prior_parameters.clear(); });
  rejected("problem.nu", [](auto& o) { o.prior_parameters["nu"] = row({1, 2, 3}); });
  rejected("problem.nu", [](auto& o) { o.features = 3, o.prior_parameters["nu"] = row({1, 2}); });
  rejected("problem.points", [](auto& o) { o.prior = "discrete"; });
  rejected("problem.points",
           [&](auto& o) { discrete(o), o.prior_parameters["points"] = Matrix::Ones(2, 3); });
  rejected("problem.weights", [&](auto& o) {
    discrete(o), o.prior_parameters["weights"] = row({0.5, 0.6});
  });
  rejected("problem.weights", [&](auto& o) {
    discrete(o), o.prior_parameters["weights"] = row({1.5, -0.5});
  });
  rejected("problem.weights",
           [&](auto& o) { discrete(o), o.prior_parameters["weights"] = row({1.0}); });
  const auto covariance = [](const Matrix& C) {
    return [C](auto& o) {
      o.prior = "gaussian";
      o.prior_parameters.clear();
      o.prior_parameters["covariance"] = C;
    };
  };
  Matrix asymmetric(2, 2), negative(2, 2);
  asymmetric << 1, 0.5, 0, 1;
  negative << 1, 2, 2, 1;
  rejected("problem.covariance", covariance(asymmetric));
  rejected("problem.covariance", covariance(negative));
  rejected("problem.covariance", covariance(Matrix::Identity(3, 3)));
}

// An empty matrix is no list of numbers (it was read beyond its end), nor is one with a NaN.
TEST(Problem, EmptyAndNonFiniteParameters) {
  for (const Matrix& bad : {Matrix(1, 0), Matrix(0, 0), Matrix(0, 2), row({NAN, 1.0}),
                            row({HUGE_VAL, 1.0}), row({1.0, 2.0, 3.0})}) {
    const auto with = [&](const char* prior, const char* name) {
      return [&, prior, name](auto& o) {
        o.prior = prior;
        if (o.prior == "discrete") {
          o.prior_parameters.clear();
          o.prior_parameters["points"] = Matrix::Identity(2, 2);
        }
        o.prior_parameters[name] = bad;
      };
    };
    EXPECT_NE(complaint("problem.nu", with("flipping", "nu")), "accepted");
    EXPECT_NE(complaint("problem.nu", with("gaussian", "nu")), "accepted");
    EXPECT_NE(complaint("problem.mean", with("gaussian", "mean")), "accepted");
    EXPECT_NE(complaint("problem.points", with("discrete", "points")), "accepted");
    EXPECT_NE(complaint("problem.weights", with("discrete", "weights")), "accepted");
    EXPECT_NE(complaint("problem.p", [&](auto& o) { o.p = bad; }), "accepted");
  }
  EXPECT_NE(complaint("problem.prior",
                      [](auto& o) {
                        o.prior = "gaussian";
                        o.prior_parameters["mean"] = row({1e200, 0.0});
                      }),
            "accepted");
}

TEST(Problem, UnusedParametersAreRemarked) {
  ProblemOptions options = good();
  options.prior_parameters["points"] = Matrix::Ones(2, 2);
  const Problem problem(options);
  ASSERT_EQ(problem.notes().size(), 1u);
  EXPECT_EQ(problem.notes()[0], "problem.points is not used by prior \"flipping\"");
}

TEST(Problem, PointsMustFit) {
  const Problem problem(good());
  EXPECT_NO_THROW(problem.check(testing::random_point(problem, 1)));
  EXPECT_THROW(problem.check(testing::random_point(problem.with_heads(3), 1)), OptionError);
  const Problem other(problem_options("softmax-1", "flipping", 4, 2, 2));
  EXPECT_THROW(problem.check(testing::random_point(other, 1)), OptionError) << "b and v too many";
  EXPECT_THROW(other.check(testing::random_point(problem, 1)), OptionError) << "no b and v";
  Point bad = testing::random_point(problem, 1);
  bad.m(0, 0) = NAN;
  EXPECT_THROW(problem.check(bad), OptionError);
}

}  // namespace
}  // namespace headflow::problem_test
