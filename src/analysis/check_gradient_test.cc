#include "analysis/check_gradient.h"

#include <gtest/gtest.h>

#include "support/problems.h"

namespace headflow::check_gradient_test {
namespace {

/// An engine whose gradient has one wrong entry.
class Wrong final : public Engine {
 public:
  Wrong(std::unique_ptr<Engine> right, double factor)
      : Engine(right->problem()), right_(std::move(right)), factor_(factor) {}
  std::string_view name() const override { return "wrong"; }
  ErrorKind error_kind() const override { return right_->error_kind(); }
  std::int64_t samples() const override { return right_->samples(); }
  void evaluate(const Point& point, const Request& request, Evaluation& out) override {
    right_->evaluate(point, request, out);
    out.grad.m(0, 1) *= factor_;
  }

 private:
  std::unique_ptr<Engine> right_;
  double factor_;
};

TEST(CheckGradient, AcceptsEveryActivationAndNoticesOneWrongEntry) {
  for (const auto& activation : activations()) {
    SCOPED_TRACE(activation->name());
    const Problem problem(
        testing::problem_options(std::string(activation->name()), "gaussian", 4, 2, 2));
    const Point point = testing::random_point(problem, 3, 0.7);
    const auto engine = [&] {
      EngineOptions options = testing::engine_options(800, 1);
      options.engine = EngineName::mc;
      return make_engine(problem, options);
    };
    if (!activation->smooth()) continue;  // differences go across kinks
    const GradientCheck right = check_gradient(*engine(), point);
    EXPECT_LT(right.relative(), 1e-8);
    Wrong wrong(engine(), 1.01);
    EXPECT_GT(check_gradient(wrong, point).relative(), 1e-6);
  }
}

}  // namespace
}  // namespace headflow::check_gradient_test
