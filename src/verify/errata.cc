// What is misprinted in version 1 of the paper: each with a measurement that the corrected
// statement meets and the printed one does not. Erratum 1 is with proposition IV.2, erratum 7 with
// IV.1 and IV.3. A remark is no error.

#include <Eigen/LU>
#include <cmath>

#include "analysis/growth.h"
#include "analysis/hessian.h"
#include "core/random.h"
#include "theory/bayes.h"
#include "theory/origin.h"
#include "theory/posterior.h"
#include "verify/claim.h"
#include "verify/second_derivatives.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

Row corrected(const char* id, const std::string& statement, const std::string& where,
              double predicted, double printed, const Measured& measured) {
  Row row{id, statement, where, {predicted}, Prediction{printed}};
  row.measured = measured.value;
  row.error = measured.error;
  row.error_kind = ErrorKind::refinement;
  row.slack = 1e-9 * std::abs(predicted);
  row.smallest_wrong = 0.5 * (predicted + printed);  // half way to what is printed
  return row;
}

// grad_R E = 2 S R with S symmetric, which is not symmetric itself.
std::vector<Row> symmetric_r(const Context& context) {
  const ProblemOptions options = setting("softmax", "flipping", 4, 2, 2, {2, 2});
  const Problem problem(options);
  Point point = at_rest(problem);
  point.m << 0.6, 0.4, 0.5, -0.3;
  point.R << 1.0, 0.3, 0.3, 0.6;
  const auto engine = quadrature(problem, 1e-8, context);
  Evaluation e;
  engine->evaluate(point, {.gradient_error = true}, e);
  const double error = e.grad_error.R.maxCoeff();
  const Matrix S = e.grad.R * point.R.inverse();
  Row row{"Remark 2",
          "a symmetric r does not stay symmetric: |g_12 - g_21| of grad_R E",
          text(options),
          {1e-3, Relation::at_least}};
  row.measured = std::abs(e.grad.R(0, 1) - e.grad.R(1, 0));
  row.error = error;
  row.error_kind = ErrorKind::refinement;
  row.smallest_wrong = e.grad.R.cwiseAbs().maxCoeff();  // it is a part of the gradient
  std::vector<Row> rows = {row};
  row.statement = "grad_R E = 2 S R with S symmetric: |S_12 - S_21|";
  row.predicted = {0};
  row.measured = std::abs(S(0, 1) - S(1, 0));
  row.error = std::max(error * point.R.inverse().norm(), 1e-12);
  row.smallest_wrong = 1e-3;
  rows.push_back(row);
  return rows;
}

std::vector<Row> constants(const Context& context) {
  const ProblemOptions options = setting("softmax", "gaussian", 5, 2, 2, {3, 1});
  const Problem problem(options);
  const OriginConstants c = origin_constants(problem, origin(problem));
  const SecondDerivativesAt at(options, {}, context);
  const Measured across = at([](const Matrix& M) { return (M(0, 2) - M(1, 3)) / (3 - 1) / 2; });
  const Measured own = at([](const Matrix& M) { return (M(1, 1) - M(1, 3)) / 2; });
  const std::string where = text(options);
  return {
      corrected("Erratum 3", "eq. (52): c2 without the second sum over tokens", where, c.c2,
                5 * c.c2, across),
      corrected("Erratum 4", "proof of A.6: the coefficient of sum_h m_h^T C m_h is -c3, not c2",
                where, -c.c3, c.c2, own),
      corrected("Erratum 4", "proof of A.6: the coefficient of sum_hh' m_h^T C m_h' is c2, not c3",
                where, c.c2, c.c3, across)};
}

// (69) has quadratic forms c~ (m, m); the second derivative of such a form is twice it, and (70)
// takes it once.
std::vector<Row> second_derivative_of_a_form(const Context& context) {
  const ProblemOptions options = setting("softmax", "gaussian", 5, 4, 2, {3, 1});
  const Problem problem(options);
  const auto engine = quadrature(problem, 1e-12, context);
  Vector u(4), a(4);
  u << 1, 0.2, -0.5, -0.7;
  a << 0.5, -0.9, 0.6, -0.2;
  const auto loss = [&](double of_u, double of_a) {
    Point point = at_rest(problem);
    point.m.col(0) = of_u * u;
    point.m.col(1) = of_a * a;
    engine->adapt(point);
    Evaluation e;
    engine->evaluate(point, {}, e);
    return e.loss;
  };
  double ratio[2];
  for (const int i : {0, 1}) {
    const double s = i == 0 ? 0.2 : 0.1;
    const double form = loss(s, s) - loss(s, 0) - loss(0, s) + loss(0, 0);
    const Matrix second = growth_block(*engine, s * u) - growth_block(*engine, Vector::Zero(4));
    ratio[i] = s * s * a.dot(second * a) / form;
  }
  Row row = corrected("Erratum 4", "(70): the Hessian is twice the form of (69): their ratio",
                      text(options), 2, 1,
                      {ratio[1] + (ratio[1] - ratio[0]) / 3, std::abs(ratio[1] - ratio[0]) / 12});
  row.error_kind = ErrorKind::next_order;
  return {row};
}

// (33) is the derivative with respect to one b_h. In the common b~ it is the sum over heads.
std::vector<Row> common_bias(const Context& context) {
  constexpr int L = 5, H = 4;
  constexpr double b = 0.5, v = 0.8;
  const ProblemOptions options = setting("softmax-1", "flipping", L, H, 2, {2, 2});
  const Problem problem(options);
  const auto at = [&](double bias) {
    Point point = at_rest(problem);
    set_block(point, "b", bias);
    set_block(point, "v", v);
    Evaluation e;
    quadrature(problem, 1e-12, context)->evaluate(point, {}, e);
    return e.loss;
  };
  const auto slope = [&](double h) { return (at(b + h) - at(b - h)) / (2 * h); };
  const double Z = L + std::exp(b),
               printed = -2 * (L * v / Z - 1) * (v / H) * std::exp(b) / (Z * Z);
  const double fine = slope(0.01), coarse = slope(0.02);
  Row row = corrected("Erratum 4", "(33) is d/db_h: d/db~ is H times it",
                      fmt::format("{}; m = R = 0, b {}, v {}", text(options), b, v), H * printed,
                      printed, {fine + (fine - coarse) / 3, std::abs(fine - coarse) / 12 + 1e-11});
  row.error_kind = ErrorKind::next_order;
  return {row};
}

// Given m_h = x E theta, the score and w . chi* (w orthogonal to E theta) are independent given
// theta, not over theta: if Cov theta couples w to the mean, the gradient leaves the mean.
std::vector<Row> correlated_mean(const Context& context) {
  ProblemOptions options = setting("softmax", "gaussian", 5, 2, 2, {});
  Matrix covariance(2, 2);
  covariance << 1, 0.5, 0.5, 1;
  options.prior_parameters["covariance"] = covariance;
  options.prior_parameters["mean"] = row_of({1, 0});
  const Problem problem(options);
  const OriginConstants c = origin_constants(problem, origin(problem));
  const SecondDerivativesAt at(options, {}, context);
  const Measured slope = at([](const Matrix& M) { return M(1, 0) + M(1, 2); });
  return {corrected("Erratum 5",
                    "A.2 needs E[w.theta | theta.E theta] = 0: d/dx of w.grad at m_h = x E theta",
                    "softmax, L 5, H 2, theta ~ N((1, 0), ((1, 0.5), (0.5, 1)))",
                    2 * (2 * (c.c2 + c.c4) - (c.c3 + c.c4)) * 0.5, 0, slope)};
}

std::vector<Row> two_tokens(const Context& context) {
  const ProblemOptions options = setting("softmax", "gaussian", 2, 4, 2, {3, 1});
  const auto engine = quadrature(Problem(options), 1e-11, context);
  Vector u(4);
  u << 1, 0.2, -0.5, -0.7;
  const MeasuredGrowth measured = measure_growth(*engine, u);
  Row row{"Erratum 6",
          "proof of A.6: c3 (there c4, c5) is positive for L >= 3, not 2",
          text(options),
          {0},
          Prediction{1e-3, Relation::at_least}};
  row.measured = measured.c.c3;
  row.error = measured.c_error.c3;
  row.error_kind = ErrorKind::extrapolation;
  row.slack = 1e-6;
  row.smallest_wrong = 0.01 * specialisation_constants(3, 4, 1, 3).c3;
  return {row};
}

// E |y - y^|^2 of the Bayes estimator, over vectors in D dimensions, is D times a loss.
std::vector<Row> risk_for_each_dimension(const Context& context) {
  constexpr int D = 400, L = 5, F = 2, kSequences = 2000;
  const ProblemOptions options = setting("softmax", "flipping", L, 2, F, {3, 2});
  const Problem problem(options);
  RandomStream stream({78, Purpose::verify, 0}, 0);
  std::vector<double> norms;
  for (int i = 0; i < kSequences; ++i) {
    context.check();
    Matrix X(L, D);
    for (double& x : X.reshaped<Eigen::RowMajor>()) x = stream.normal();
    Vector theta(F), z(F);
    for (double& x : z) x = stream.normal();
    problem.prior().sample(stream.uniform(), z.data(), theta.data());
    X.row(0).head(F) += theta.transpose();  // k*_f are the first unit vectors
    const Vector posterior = bayes_posterior(problem, X.leftCols(F));
    norms.push_back((X.row(0).transpose() - X.transpose() * posterior).squaredNorm());
  }
  const Measured mean = mean_of(norms);
  const double risk = bayes_risk(problem, {.tolerance = 1e-8}, context).risk;
  Row row = corrected("Erratum 7", "the Bayes risk is E |y - y^|^2 / D; printed without 1/D",
                      fmt::format("{}; D = {}, {} sequences", text(options), D, kSequences), risk,
                      D * risk, {mean.value / D, mean.error / D});
  row.error_kind = ErrorKind::replicas;
  row.slack = 5.0 / D * risk;  // squared norms of tokens are D up to terms of order 1
  row.smallest_wrong = 1.2 * risk;
  return {row};
}

}  // namespace

std::vector<Claim> errata_claims(Effort /*effort*/) {
  return {{"Remark 2", "r does not stay symmetric", 0.2, symmetric_r},
          {"Erratum 3 and 4", "names and sums of constants", 0.2, constants},
          {"Erratum 4", "the second derivative of a form", 0.2, second_derivative_of_a_form, "70"},
          {"Erratum 4", "a common bias", 0.2, common_bias, "33"},
          {"Erratum 5", "a mean that is correlated with the rest", 0.2, correlated_mean},
          {"Erratum 6", "two tokens", 0.2, two_tokens},
          {"Erratum 7", "the Bayes risk of a dimension", 0.5, risk_for_each_dimension, "Bayes"}};
}

}  // namespace headflow
