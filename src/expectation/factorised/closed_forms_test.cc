// Closed forms of the paper around m = 0, R = 0, with its errata, by the factorised engine.

#include <gtest/gtest.h>

#include "expectation/factorised/factorised.h"
#include "support/effort.h"
#include "support/problems.h"
#include "support/random_problems.h"
#include "support/reference_model.h"

namespace headflow::closed_forms_test {
namespace {

using testing::Draw;
using testing::flatten;

constexpr double kTolerance = 1e-10;  // asked of the engine
constexpr double kClose = 1e-7;       // of second derivatives; the largest difference seen is 2e-8

Factorised make_factorised(const Problem& problem) {
  EngineOptions options = testing::engine_options(0, 1);
  options.tolerance = kTolerance;
  return {problem, options};
}

/// Zero mean and a covariance that is not diagonal.
Problem centred_problem(const std::string& activation, const std::string& prior, int L, int H,
                        Draw& draw) {
  const int F = 3;
  ProblemOptions options;
  options.activation = activation;
  options.prior = prior;
  options.tokens = L;
  options.heads = H;
  options.features = F;
  PriorParameters& p = options.prior_parameters;
  const Matrix X = draw.normals(2, F);
  Matrix points(4, F);
  points << X, -X;
  if (prior == "gaussian") {
    p["covariance"] = draw.covariance(F);
  } else if (prior == "discrete") {
    p["points"] = points;
    p["weights"] = testing::row({0.2, 0.3, 0.2, 0.3});
  } else {  // Gaussians at +-x, atoms at +-y
    Matrix covariances = Matrix::Zero(4 * F, F);
    covariances.middleRows(0, F) = draw.covariance(F);
    covariances.middleRows(2 * F, F) = draw.covariance(F);
    p["means"] = points;
    p["covariances"] = covariances;
    p["weights"] = testing::row({0.2, 0.3, 0.2, 0.3});
  }
  return Problem(options);
}

constexpr const char* kCentred[] = {"gaussian", "discrete", "mixture"};

Point flat_point(const Problem& problem, double b, double v) {
  Point point = problem.zero_point();
  testing::set_block(point, "b", b);
  testing::set_block(point, "v", v);
  return point;
}

/// Attention v / (L + e^b) for softmax-1; on the line L v = L + e^b it is 1/L.
double v_on_the_line(int L, double b) { return (L + std::exp(b)) / L; }

struct Coefficients {
  double c1, c2, c3, c4;
};

/// sum_h d sigma(h)_l / d chi_1l' at chi = 0, from the definition of the activation.
Matrix derivative_of_sum(const std::string& activation, int L, int H, double b, double v) {
  using Dual = Eigen::AutoDiffScalar<Vector>;
  const auto constant = [L](double x) { return Dual(x, Vector(Vector::Zero(L))); };
  testing::Grid<Dual> chi(static_cast<std::size_t>(H));
  for (auto& row : chi) row.assign(static_cast<std::size_t>(L), constant(0.0));
  for (int l = 0; l < L; ++l) chi[0][static_cast<std::size_t>(l)] = Dual(0.0, L, l);
  const std::vector<Dual> biases(static_cast<std::size_t>(H), constant(b));
  const auto sigma = testing::sigma(activation, chi, biases, constant(v));
  Matrix out = Matrix::Zero(L, L);
  for (const auto& row : sigma) {
    for (int l = 0; l < L; ++l) out.row(l) += row[static_cast<std::size_t>(l)].derivatives();
  }
  return out;
}

Coefficients coefficients(const std::string& activation, int L, int H, double b, double v) {
  const Matrix J = derivative_of_sum(activation, L, H, b, v);
  const double l = L, h = H, Z = L + std::exp(b);
  Coefficients c{J.squaredNorm() / (h * h), J.col(0).squaredNorm() / (h * h), 0, 0};
  if (activation == "softmax") c.c3 = (l - 1) / (h * l * l) * (1 - 2 / l);
  if (activation == "softmax-1") c.c3 = v * (l - 1) / (h * l * Z) * (1 - 2 / Z);
  if (activation == "b-softmax") {
    c.c3 = (l - 1) / (h * l * l) * (1 - 2 / (h * l));
    c.c4 = 2 * (l - 1) / (l * h * l * h * l);
  }
  return c;
}

/// Gradient at `d` of the quadratic part of E, with C = Cov theta.
Point quadratic_gradient(const Coefficients& c, const Matrix& C, const Point& d) {
  Point out = Point::zero_like(d);
  const Eigen::RowVectorXd m = d.m.colwise().sum(), R = d.R.colwise().sum();
  for (int h = 0; h < d.heads(); ++h) {
    out.m.row(h) = 2 * c.c1 * m + 2 * (c.c2 + c.c4) * m * C - 2 * (c.c3 + c.c4) * d.m.row(h) * C;
    out.R.row(h) = 2 * c.c1 * R;
  }
  return out;
}

double difference(const Point& a, const Point& b) {
  return (flatten(a) - flatten(b)).cwiseAbs().maxCoeff();
}

TEST(ClosedForms, SecondOrderAroundTheOrigin) {
  int number = 0;
  double control = HUGE_VAL;
  for (const char* activation : testing::kAllActivations) {
    const bool sink = std::string(activation) == "softmax-1";
    for (const char* prior : kCentred) {
      for (const int L : {2, 3, 5, 50}) {
        for (const int H : {1, 2, 4, 8}) {
          Draw draw(static_cast<std::uint64_t>(100 * L + H));
          const double b = draw.uniform(-2, 2), v = sink ? v_on_the_line(L, b) : 1.0;
          if (testing::left_out(number++, 5)) continue;
          SCOPED_TRACE(fmt::format("{} {} L {} H {} b {}", activation, prior, L, H, b));
          const Problem problem = centred_problem(activation, prior, L, H, draw);
          Factorised engine = make_factorised(problem);
          const Point origin = flat_point(problem, b, v),
                      d = testing::random_heads(problem, 1, 1, draw);
          Evaluation e;
          engine.evaluate(origin, {}, e);
          EXPECT_NEAR(e.loss, 1 - 1.0 / L, 1e-10);
          EXPECT_LE(flatten(e.grad).cwiseAbs().maxCoeff(), 1e-10);

          Coefficients c = coefficients(activation, L, H, b, v);
          Point exact = quadratic_gradient(c, problem.prior().covariance(), d), got;
          if (sink) {  // along (b, v) E = 1 - 2A + L A^2 with A = mean of v / (L + e^b), L A = 1
            const double Z = L + std::exp(b), A_b = -v / H * std::exp(b) / (Z * Z), A_v = 1 / Z;
            const double A = A_b * d["b"].sum() + A_v * d["v"][0];
            exact["b"].setConstant(2 * L * A_b * A);
            exact["v"][0] = 2 * L * A_v * A;
          }
          engine.hessian_product(origin, d, got);
          EXPECT_LE(difference(got, exact), kClose);
          c.c3 *= 1.01;
          const Matrix& C = problem.prior().covariance();
          if (L > 2 && H > 1)
            control = std::min(control, difference(got, quadratic_gradient(c, C, d)));
        }
      }
    }
  }
  EXPECT_GT(control, 10 * kClose) << "negative control: c3 wrong by 1 %";
}

// d^2 E / db_h db_h' = 2 v^2 L e^2b / (H^2 (L + e^b)^4) for softmax-1, 0 for B-softmax.
TEST(ClosedForms, SecondDerivativesInTheBiases) {
  int number = 0;
  for (const int L : {2, 3, 5, 50}) {
    for (const int H : {1, 2, 4, 8}) {
      for (const double b : {-1.5, 0.0, 2.0}) {
        for (const char* activation : {"softmax-1", "b-softmax"}) {
          const bool sink = std::string(activation) == "softmax-1";
          if (testing::left_out(number++, 7)) continue;
          SCOPED_TRACE(fmt::format("{} L {} H {} b {}", activation, L, H, b));
          const double v = sink ? v_on_the_line(L, b) : 1.0, Z = L + std::exp(b);
          const Problem problem(testing::problem_options(activation, "flipping", L, H, 2));
          Factorised engine = make_factorised(problem);
          Point d = problem.zero_point(), got;
          d["b"][0] = 1;
          engine.hessian_product(flat_point(problem, b, v), d, got);
          const double exact = sink ? 2 * v * v * L * std::exp(2 * b) / (H * H * Z * Z * Z * Z) : 0;
          EXPECT_LE((got["b"].array() - exact).abs().maxCoeff(), kClose);
        }
      }
    }
  }
}

// Beyond lemma A.5: B-softmax with unequal biases, pi = softmax(b), J = (I - 11^T/L)/L.
TEST(ClosedForms, UnequalBiases) {
  for (const char* prior : kCentred) {
    for (const int L : {2, 3, 5, 50}) {
      for (const int H : {2, 4, 8}) {
        SCOPED_TRACE(fmt::format("{} L {} H {}", prior, L, H));
        Draw draw(static_cast<std::uint64_t>(200 * L + H));
        const Problem problem = centred_problem("b-softmax", prior, L, H, draw);
        const Matrix& C = problem.prior().covariance();
        Factorised engine = make_factorised(problem);
        Point origin = problem.zero_point(), d = testing::random_heads(problem, 1, 1, draw), got;
        origin["b"] = draw.normals(H, 1);
        const Vector pi = origin["b"].array().exp() / origin["b"].array().exp().sum();
        const Matrix J = (Matrix::Identity(L, L) - Matrix::Constant(L, L, 1.0 / L)) / L;
        const double l = L, own = (l - 1) / (l * l);
        const double pairs = J.col(0).squaredNorm() + 2 * own / l;
        const Eigen::RowVectorXd m = pi.transpose() * d.m, R = pi.transpose() * d.R;
        Point exact = problem.zero_point();
        exact.m = 2 * pi * (J.squaredNorm() * m + pairs * m * C) -
                  2 * own * Matrix(pi.asDiagonal()) * d.m * C;
        exact.R = 2 * J.squaredNorm() * pi * R;
        engine.hessian_product(origin, d, got);
        EXPECT_LE(difference(got, exact), kClose);
        const Coefficients equal = coefficients("b-softmax", L, H, 0.0, 1.0);
        EXPECT_GT(difference(got, quadratic_gradient(equal, C, d)), 1e-4) << "negative control";
      }
    }
  }
}

// Beyond lemma A.5: with E theta != 0, E gains -2(L-1)/(H L^2) sum_h m_h . E theta (softmax), and C
// becomes E theta theta^T.
TEST(ClosedForms, PriorWithAMean) {
  int number = 0;
  for (const char* prior : {"full", "discrete", "mixture", "flipping"}) {
    for (const int L : {2, 3, 5, 50}) {
      for (const int H : {1, 2, 4, 8}) {
        if (testing::left_out(number++, 5)) continue;
        SCOPED_TRACE(fmt::format("{} L {} H {}", prior, L, H));
        Draw draw(static_cast<std::uint64_t>(300 * L + H));
        const int F = 3;
        const Problem problem(testing::random_options("softmax", prior, L, H, F, draw));
        const Vector& mean = problem.prior().mean();
        const Matrix& C = problem.prior().covariance();
        Factorised engine = make_factorised(problem);
        const Point origin = flat_point(problem, 0, 1),
                    d = testing::random_heads(problem, 1, 1, draw);
        Evaluation e;
        engine.evaluate(origin, {}, e);
        for (int h = 0; h < H; ++h) {
          const Vector exact = -2.0 * (L - 1) / (double(H) * L * L) * mean;
          EXPECT_LE((e.grad.m.row(h).transpose() - exact).cwiseAbs().maxCoeff(), 1e-10);
        }
        const Coefficients c = coefficients("softmax", L, H, 0, 1);
        Point got;
        engine.hessian_product(origin, d, got);
        EXPECT_LE(difference(got, quadratic_gradient(c, C + mean * mean.transpose(), d)), kClose);
        if (L > 2 && H > 1) {  // with L = 3, H = 1 the terms in C cancel
          EXPECT_GT(difference(got, quadratic_gradient(c, C, d)), 1e-5) << "negative control";
        }
      }
    }
  }
}

// At m = R = 0 attention is uniform, A = mean_h v / (L + e^b_h), and E = 1 - 2A + L A^2.
TEST(ClosedForms, BiasesAndScaleOfSoftmax1) {
  int number = 0;
  for (const int L : {2, 3, 5, 50}) {
    for (const int H : {1, 2, 4, 8}) {
      if (testing::left_out(number++, 3)) continue;
      SCOPED_TRACE(fmt::format("L {} H {}", L, H));
      Draw draw(static_cast<std::uint64_t>(400 * L + H));
      const Problem problem(testing::problem_options("softmax-1", "gaussian", L, H, 2));
      Factorised engine = make_factorised(problem);
      Point point = problem.zero_point();
      const Vector b = draw.normals(H, 1);
      double& v = point["v"][0];
      point["b"] = b;
      v = draw.uniform(0.5, 1.5);
      const Vector Z = L + b.array().exp();
      const double A = v * Z.cwiseInverse().mean(), slope = 2 * L * A - 2;
      Evaluation e;
      engine.evaluate(point, {}, e);
      EXPECT_NEAR(e.loss, 1 - 2 * A + L * A * A, 1e-10);
      const Vector exact = -slope * v / H * b.array().exp() / Z.array().square();
      EXPECT_LE((e.grad["b"] - exact).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_NEAR(e.grad["v"][0], slope * A / v, 1e-10);
      v /= L * A;
      engine.evaluate(point, {}, e);
      EXPECT_LE(flatten(e.grad).cwiseAbs().maxCoeff(), 1e-10) << "L A = 1";
    }
  }
}

}  // namespace
}  // namespace headflow::closed_forms_test
