// Hidden directions that are not orthonormal: engines with problem.p against a plain simulation
// with vectors in a few dimensions.

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "expectation/engine.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/reference_model.h"

namespace headflow::overlaps_test {
namespace {

using testing::Grid;
using testing::problem_options;

constexpr int kDimension = 8, L = 4, H = 2, F = 3;

/// Vectors k*_f and k_h, one a row, and what the engines are told of them. The same for all
/// activations, but for b and v.
struct Vectors {
  Matrix spikes, heads;
  Point user;  ///< m = k_h . k*_f and R from q - m p^-1 m^T

  explicit Vectors(const Problem& problem) : user(testing::random_point(problem, 4)) {
    std::mt19937_64 generator(11);
    std::normal_distribution<double> normal(0.0, 1.0 / std::sqrt(kDimension));
    spikes.resize(F, kDimension), heads.resize(H, kDimension);
    for (double& x : spikes.reshaped()) x = normal(generator);
    spikes.col(0).array() += 0.8;  // overlaps far from I
    for (double& x : heads.reshaped()) x = normal(generator);
    Matrix along(H, F);  // heads that have learnt something of the directions
    along << 1.5, 0.5, -1.0, 0.5, -1.0, 1.0;
    heads += along * spikes;
    user.m = heads * spikes.transpose();
    user.R = positive_square_root(heads * heads.transpose() -
                                  user.m * p().inverse() * user.m.transpose());
  }
  Matrix p() const { return spikes * spikes.transpose(); }
};

ProblemOptions options_for(const std::string& activation, const std::string& prior) {
  return problem_options(activation, prior, L, H, F);
}

/// Mean loss over fresh sequences X_l ~ N(delta_{l,0} theta . k*, I), and its standard error.
std::pair<double, double> simulate(const ProblemOptions& options, const Vectors& vectors) {
  const Problem plain(options);  // theta as the user writes its law
  std::mt19937_64 generator(22);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Grid<double> weights(H);
  for (int h = 0; h < H; ++h) {
    for (const double x : vectors.heads.row(h)) weights[std::size_t(h)].push_back(x);
  }
  const Vector biases = testing::b_of(vectors.user);
  const std::vector<double> b(biases.begin(), biases.end());
  const double v = testing::v_of(vectors.user);
  const int kSamples = testing::by_effort(40'000, 200'000, 200'000);
  double sum = 0, squares = 0;
  Matrix x(L, kDimension);
  Vector theta(F), z(F);
  for (int i = 0; i < kSamples; ++i) {
    for (double& entry : x.reshaped()) entry = normal(generator);
    for (double& entry : z) entry = normal(generator);
    plain.prior().sample(uniform(generator), z.data(), theta.data());
    x.row(0) += theta.transpose() * vectors.spikes;
    const double loss = testing::sample_loss(options.activation, x, 0, weights, b, v);
    sum += loss, squares += loss * loss;
  }
  const double mean = sum / kSamples;
  return {mean, std::sqrt((squares / kSamples - mean * mean) / kSamples)};
}

// 6 cases x 2 engines at 4.5 standard errors: false-alarm rate 1e-4. The same engines that are not
// told p must fail: at these overlaps the loss is then wrong by far more than the error.
TEST(Overlaps, EnginesAgreeWithVectors) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    for (const char* prior : {"discrete", "full"}) {
      SCOPED_TRACE(std::string(activation) + " " + prior);
      ProblemOptions options = options_for(activation, prior);
      const Vectors vectors{Problem(options)};
      const auto [loss, error] = simulate(options, vectors);
      for (const EngineName engine : {EngineName::mc, EngineName::factorised}) {
        EngineOptions how = testing::engine_options(engine == EngineName::mc ? 200'000 : 0, 5);
        how.engine = engine;
        how.tolerance = 1e-5;
        const auto z = [&, loss = loss, error = error](const Problem& problem) {
          Evaluation result;
          make_engine(problem, how)
              ->evaluate(problem.frame().enter(vectors.user), {.loss_error = true}, result);
          return std::abs(result.loss - loss) / std::hypot(error, result.loss_error);
        };
        options.p = vectors.p();
        EXPECT_LT(z(Problem(options)), 4.5) << to_string(engine);
        options.p.reset();
        EXPECT_GT(z(Problem(options)), 10.0) << to_string(engine);
      }
    }
  }
}

// dE/dm with respect to m_hf = k_h . k*_f, by central differences in that m.
TEST(Overlaps, TheGradientIsInTheUsersOverlaps) {
  for (const char* activation : {"softmax", "softmax-1", "b-softmax"}) {
    SCOPED_TRACE(activation);
    ProblemOptions options = options_for(activation, "full");
    const Vectors vectors{Problem(options)};
    options.p = vectors.p();
    const Problem problem(options);
    EngineOptions how;
    how.engine = EngineName::factorised;
    how.tolerance = 1e-9;
    const auto engine = make_engine(problem, how);
    engine->adapt(problem.frame().enter(vectors.user));  // the same nodes for all evaluations
    const auto evaluate = [&](const Point& user) {
      Evaluation result;
      engine->evaluate(problem.frame().enter(user), {.gradient_error = true}, result);
      return result;
    };
    const Evaluation here = evaluate(vectors.user);
    const Matrix gradient = problem.frame().leave_gradient(here.grad).m;
    for (int h = 0; h < H; ++h) {
      for (int f = 0; f < F; ++f) {
        constexpr double kStep = 1e-4;
        Point above = vectors.user, below = vectors.user;
        above.m(h, f) += kStep, below.m(h, f) -= kStep;
        const double slope = (evaluate(above).loss - evaluate(below).loss) / (2 * kStep);
        EXPECT_NEAR(gradient(h, f), slope, 1e-7);
      }
    }
    EXPECT_GT((gradient - here.grad.m).cwiseAbs().maxCoeff(), 1e-3);  // it is not the frame's
  }
}

}  // namespace
}  // namespace headflow::overlaps_test
