// Activations that want many groups at once: engines and SGD give them blocks, and get the same
// numbers.

#include <gtest/gtest.h>

#include "core/error.h"
#include "expectation/engine.h"
#include "sgd/method.h"
#include "support/problems.h"

namespace headflow::together_test {
namespace {

/// Another activation without what is fast in it, so many groups at once.
class Grouped final : public Activation {
 public:
  Grouped(const std::string& name, std::size_t groups)
      : one_(find_activation(name)), groups_(groups) {}
  std::string_view name() const override { return one_->name(); }
  std::string_view formula() const override { return one_->formula(); }
  std::vector<BlockInfo> blocks() const override { return one_->blocks(); }
  void attention(const Sizes& sizes, const double* chi, const double* parameters,
                 double* sigma) const override {
    one_->attention(sizes, chi, parameters, sigma);
  }
  void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
               double* mean) const override {
    one_->forward(sizes, parameters, u, state, mean);
  }
  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* state, double* grad) const override {
    one_->backward(sizes, parameters, s, u, state, grad);
  }
  std::size_t state_groups(const Sizes& sizes) const override { return one_->state_groups(sizes); }
  std::size_t preferred_groups(const Sizes& /*sizes*/) const override { return groups_; }

 private:
  std::shared_ptr<const Activation> one_;
  std::size_t groups_;
};

Problem grouped(const std::string& activation, const std::string& prior, std::size_t groups) {
  ProblemOptions options = testing::problem_options(activation, prior, 5, 3, 2);
  options.own_activation = std::make_shared<const Grouped>(activation, groups);
  return Problem(options);
}

Evaluation evaluation(const Problem& problem, EngineName engine, int threads) {
  EngineOptions options = testing::engine_options(5003, 7);
  options.engine = engine;
  Evaluation out;
  make_engine(problem, options, {}, Context::threads(threads))
      ->evaluate(testing::random_point(problem, 3), {.gradient_error = true, .second_moment = true},
                 out);
  return out;
}

void expect_same(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.loss_error, b.loss_error);
  EXPECT_EQ(a.grad.packed(), b.grad.packed());
  EXPECT_EQ(a.grad_error.packed(), b.grad_error.packed());
  EXPECT_EQ(a.second_moment, b.second_moment);
}

// Two groups are fewer than a chunk has, which is then as for the others: all bits are the same.
// More of them make chunks longer: sums are rounded otherwise, and errors are of other batches.
TEST(Together, EnginesGiveTheSameBits) {
  for (const EngineName engine : {EngineName::mc, EngineName::qmc}) {
    for (const char* activation : {"softmax", "softmax-1", "b-softmax", "sigmoid"}) {
      for (const char* prior : {"flipping", "gaussian", "mixture"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", to_string(engine), activation, prior));
        const Evaluation one = evaluation(grouped(activation, prior, 1), engine, 1);
        expect_same(one, evaluation(grouped(activation, prior, 2), engine, 1));
        const Evaluation many = evaluation(grouped(activation, prior, 4096), engine, 1);
        expect_same(many, evaluation(grouped(activation, prior, 4096), engine, 3));
        EXPECT_NEAR(one.loss, many.loss, 1e-14);
        EXPECT_LE((one.grad.packed() - many.grad.packed()).cwiseAbs().maxCoeff(), 1e-14);
        EXPECT_LE((one.second_moment - many.second_moment).cwiseAbs().maxCoeff(), 1e-14);
      }
    }
  }
}

TEST(Together, ReducedGivesTheSameBits) {  // blocks are of 64 groups for the others, too
  for (const std::int64_t dimension : {12, 1000}) {
    const SgdSetting setting{dimension, 1500, 0.5, 9, 0};
    const SgdState start = initial_state(grouped("softmax-1", "gaussian", 1), dimension, 1, 0);
    std::vector<double> states[2];
    for (const std::size_t groups : {1, 64}) {
      for (const int threads : {1, 3}) {
        const Workers workers(Context::threads(threads));
        const auto sgd =
            make_reduced(grouped("softmax-1", "gaussian", groups), setting, start, workers);
        sgd->step(0);
        sgd->step(1);
        states[groups > 1] = sgd->save();
      }
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

TEST(Together, DirectGivesTheSameNumbers) {  // parameters are summed lane by lane
  const SgdSetting setting{40, 1500, 0.5, 9, 0};
  const SgdState start = initial_state(grouped("softmax-1", "gaussian", 1), 40, 1, 0);
  std::vector<double> states[2];
  for (const std::size_t groups : {1, 4}) {
    const Workers workers;
    const auto sgd = make_direct(grouped("softmax-1", "gaussian", groups), setting, start, workers);
    sgd->step(0);
    sgd->step(1);
    states[groups > 1] = sgd->save();
  }
  ASSERT_EQ(states[0].size(), states[1].size());
  for (std::size_t i = 0; i < states[0].size(); ++i) {
    EXPECT_NEAR(states[0][i], states[1][i], 1e-13);
  }
}

TEST(Together, AnOwnActivationCountsWhereItsNameIsAskedFor) {
  ProblemOptions options = testing::problem_options("softmax", "gaussian", 5, 3, 2);
  options.own_activation = std::make_shared<const Grouped>("sigmoid", 4);
  EXPECT_EQ(Problem(options).activation().preferred_groups({5, 3, 2}), 1u);
  options.activation = "sigmoid";
  EXPECT_EQ(Problem(options).activation().preferred_groups({5, 3, 2}), 4u);
  options.own_prior = {"mine", Problem(options).with_heads(1).prior_times(Matrix::Identity(2, 2))};
  options.prior = "mine";
  EXPECT_EQ(Problem(options).prior().mean().size(), 2);
  options.features = 3;
  EXPECT_THROW(Problem{options}, OptionError);
}

}  // namespace
}  // namespace headflow::together_test
