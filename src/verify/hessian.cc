// The Hessian at the unspecialised point: lemma III.1, in full lemma A.5. Every constant over a
// grid of L, H and b, read off the engine's exact second derivatives.

#include "analysis/hessian.h"

#include <cmath>

#include "theory/origin.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

constexpr double kTolerance = 1e-11;

/// Largest difference to a Hessian with fewer nodes.
double refinement(const Problem& problem, const Point& point, const Hessian& fine,
                  const Context& context) {
  const auto engine = quadrature(problem, 30 * kTolerance, context);
  engine->adapt(point);
  return (hessian(*engine, point).matrix - fine.matrix).cwiseAbs().maxCoeff();
}

// With C diagonal, d^2E / dm_hf dm_h'f = 2 (c1 + (c2 + c4) C_ff) - 2 (c3 + c4) C_ff delta_hh'.
std::vector<Row> constants(const char* activation, const Context& context) {
  std::vector<Row> rows;
  const bool biased = std::string(activation) != "softmax";
  for (const int L : {3, 5, 20, 200}) {
    for (const int H : {2, 4}) {
      for (const double b : biased ? std::vector{-1.0, 0.0, 1.5} : std::vector{0.0}) {
        const ProblemOptions options = setting(activation, "gaussian", L, H, 2, {3, 1});
        const Problem problem(options);
        const auto engine = quadrature(problem, kTolerance, context);
        Point biased_start = problem.start_point();
        set_block(biased_start, "b", b);
        const Point point = origin(problem, biased_start.blocks);
        engine->adapt(point);
        const Hessian hess = hessian(*engine, point);
        const double error = kTolerance + refinement(problem, point, hess, context);
        const OriginConstants c = origin_constants(problem, point);
        const Matrix& M = hess.matrix;  // m_hf is coordinate h F + f, then R, then b
        const double other_1 = M(0, 2), other_2 = M(1, 3), own_2 = M(1, 1);
        const double slope = (other_1 - other_2) / (3 - 1) / 2;
        const auto add = [&](const char* name, const char* statement, double predicted,
                             double measured) {
          Row row{fmt::format("Lemma III.1 (A.5) {}", name), statement};
          row.setting = fmt::format("{}{}", text(options), biased ? fmt::format(", b {}", b) : "");
          row.predicted = {predicted};
          row.measured = measured;
          row.error = error;
          row.error_kind = ErrorKind::refinement;
          row.slack = 1e-9 * std::abs(predicted);
          row.smallest_wrong = predicted == 0 ? 1e-3 : 1.05 * predicted;
          rows.push_back(row);
        };
        add("c1", "coefficient of sum_hh' m_h . m_h'", c.c1, other_2 / 2 - slope);
        add("c2 + c4", "coefficient of sum_hh' m_h^T C m_h'", c.c2 + c.c4, slope);
        add("c3 + c4", "minus the coefficient of sum_h m_h^T C m_h", c.c3 + c.c4,
            (other_2 - own_2) / 2);
        add("c1 of R", "coefficient of sum_hh' (R R^T)_hh'", c.c1, M(2 * H, 3 * H) / 2);
        if (biased) {
          const Eigen::Index first = 2 * H + H * H;
          const double Z = L + std::exp(b), v = Z / L;
          add("c5", "d^2E / db db' = 2 v^2 L e^2b / (H^2 (L + e^b)^4), 0 for B-softmax",
              std::string(activation) == "softmax-1"
                  ? 2 * v * v * L * std::exp(2 * b) / (H * H * std::pow(Z, 4))
                  : 0.0,
              M(first, first + 1));
        }
      }
    }
  }
  return rows;
}

// Strictly positive for L >= 3, as stated; at L = 2 c3 vanishes and softmax learns nothing from a
// prior without a mean.
std::vector<Row> signs(const Context& context) {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "gaussian", 3, 3, 2, {3, 1});
    const Problem problem(options);
    const Point point = origin(problem);
    // Twice, with different rules: what differs is the error.
    Hessian hess[2];
    ModeShape shape[2];
    for (const int i : {0, 1}) {
      const auto engine = quadrature(problem, i == 0 ? kTolerance : 1000 * kTolerance, context);
      engine->adapt(point);
      hess[i] = hessian(*engine, point);
      shape[i] = mode_shape(hess[i].mode(0));
    }
    const auto first = [&](int i) { return shape[i].direction[0] * shape[i].direction[0]; };
    Row row{"Lemma III.1 (A.5) escape", "heads part: the lowest curvature is negative for L >= 3"};
    row.setting = text(options);
    row.error_kind = ErrorKind::refinement;
    row.predicted = {0, Relation::at_most};
    row.measured = hess[0].eigenvalues[0];
    row.error = std::abs(hess[1].eigenvalues[0] - row.measured) + 1e-14;
    row.smallest_wrong = 1.01 * row.measured;
    rows.push_back(row);
    row.statement = "they part across heads: share of that mode along 1_H";
    row.predicted = {0};
    row.measured = shape[0].along;
    row.error = std::abs(shape[1].along - row.measured) + 1e-14;
    row.smallest_wrong = 0.01;
    rows.push_back(row);
    row.statement = "along the feature of the largest variance: share of that mode";
    row.predicted = {1};
    row.measured = first(0);
    row.error = std::abs(first(1) - first(0)) + 1e-14;
    row.smallest_wrong = 0.99;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::vector<Claim> hessian_claims(Effort /*effort*/) {
  return {
      {"Lemma III.1 (A.5) softmax", "its constants", 1,
       [](const Context& context) { return constants("softmax", context); }, "c1 c2 + c4 c3 of R"},
      {"Lemma III.1 (A.5) softmax-1", "its constants", 1,
       [](const Context& context) { return constants("softmax-1", context); },
       "c1 c2 + c4 c3 of R c5"},
      {"Lemma III.1 (A.5) B-softmax", "its constants", 1,
       [](const Context& context) { return constants("b-softmax", context); },
       "c1 c2 + c4 c3 of R c5"},
      {"Lemma III.1 (A.5) escape", "heads part", 1, signs}};
}

}  // namespace headflow
