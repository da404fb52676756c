// What the lemmas' hypotheses leave out: no errors of the paper. (Extension 3, a finite learning
// rate, is with proposition III.2.)

#include <cmath>

#include "verify/claim.h"
#include "verify/second_derivatives.h"

namespace headflow {
namespace {

Row extension(const char* id, const std::string& statement, const std::string& where,
              double predicted, double wrong, const Measured& measured) {
  Row row{id, statement, where, {predicted}};
  row.measured = measured.value;
  row.error = measured.error;
  row.error_kind = ErrorKind::refinement;
  row.slack = 1e-9 * std::abs(predicted);
  row.smallest_wrong = wrong;
  return row;
}

// Lemma A.5 assumes equal biases. B-softmax with unequal ones, pi = softmax(b).
std::vector<Row> unequal_biases(const Context& context) {
  const ProblemOptions options = setting("b-softmax", "gaussian", 5, 3, 2, {3, 1});
  const double L = 5, C = 3;
  Vector b(3);
  b << 0.7, -0.3, 0.1;
  const Vector pi = b.array().exp() / b.array().exp().sum();
  const SecondDerivativesAt at(options, b, context);
  const double both = (L - 1) / (L * L) + 3 * (L - 1) / (L * L * L) * C;
  const double own = 2 * pi[0] * pi[0] * both - 2 * (L - 1) / (L * L) * pi[0] * C;
  // The lemma's equal weights would give 1/H for pi.
  const double equal = 2 * both / 9, equal_own = equal - 2 * (L - 1) / (L * L) * C / 3;
  const std::string where = text(options) + ", b (0.7, -0.3, 0.1)";
  return {extension("Extension 1", "A.5 for unequal b, two heads: d^2E / dm_11 dm_21", where,
                    2 * pi[0] * pi[1] * both, equal, at([](const Matrix& M) { return M(0, 2); })),
          extension("Extension 1", "A.5 for unequal b, one head: d^2E / dm_11^2", where, own,
                    equal_own, at([](const Matrix& M) { return M(0, 0); }))};
}

// Lemma A.5 assumes m . E theta = 0; (48) and (49) are more general. Here theta_1 = sqrt(nu_1)
// always, so that its variance is 0.
std::vector<Row> with_a_mean(const Context& context) {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "flipping", 5, 2, 2, {3, 1});
    const Problem problem(options);
    const OriginConstants c = origin_constants(problem, origin(problem));
    const SecondDerivativesAt at(options, {}, context);
    rows.push_back(extension(
        "Extension 2", "along the mean C is E[theta theta^T]: own - other of m_h1", text(options),
        -2 * (c.c3 + c.c4) * 3, 0, at([](const Matrix& M) { return M(0, 0) - M(0, 2); })));
    double slope[2];
    for (const int i : {0, 1}) {
      Evaluation e;
      quadrature(problem, i == 0 ? 1e-11 : 1e-9, context)->evaluate(origin(problem), {}, e);
      slope[i] = e.grad.m(0, 0);
    }
    rows.push_back(extension(
        "Extension 2", "E gains -2 (L-1)/(H L^2) sum_h m_h . E theta (softmax)", text(options),
        -c.g1 * std::sqrt(3.0), 0, {slope[0], std::abs(slope[1] - slope[0]) + 1e-13}));
  }
  return rows;
}

}  // namespace

std::vector<Claim> extension_claims(Effort /*effort*/) {
  return {{"Extension 1", "unequal biases", 0.2, unequal_biases},
          {"Extension 2", "a prior with a mean", 0.2, with_a_mean}};
}

}  // namespace headflow
