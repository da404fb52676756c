// The Hessian during specialisation: lemma III.2, in full lemma A.6. The paper gives signs; the
// closed forms are those of theory/specialisation.h.

#include <cmath>

#include "analysis/growth.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

constexpr double kTolerance = 1e-11;

/// Four heads with unequal squares: they tell the three constants apart.
Vector learnt() {
  Vector u(4);
  for (int h = 0; h < 4; ++h) u[h] = std::cos(1.0 + 2 * h);
  return u.array() - u.mean();
}

std::vector<Row> constants() {
  std::vector<Row> rows;
  for (const int L : {2, 3, 4, 5, 10, 20, 50}) {
    const double W = 3, V = 1;
    const ProblemOptions options = setting("softmax", "gaussian", L, 4, 2, {W, V});
    const auto engine = quadrature(Problem(options), kTolerance);
    const MeasuredGrowth measured = measure_growth(*engine, learnt());
    const SpecialisationConstants c = specialisation_constants(L, 4, V, W);
    const auto add = [&](const char* name, const char* statement, Prediction predicted,
                         double value, double error) {
      Row row{fmt::format("Lemma III.2 (A.6) {}", name), statement};
      row.setting = text(options);
      row.predicted = predicted;
      row.measured = value;
      row.error = error;
      row.error_kind = "extrapolation of differences";
      row.slack = 1e-6;
      rows.push_back(row);
    };
    add("c1", "= V W (L-1)(L-2)^2 / (H^2 L^5), closed form", {c.c1}, measured.c.c1,
        measured.c_error.c1);
    add("c2", "= 2 (L-1)(L-2) / (H L^4) (3 (V+W) - V W (L^2-12L+12) / 2L), closed form", {c.c2},
        measured.c.c2, measured.c_error.c2);
    add("c3", "= 2 (L-1)(L-2) / (H^2 L^3) (1 + (V+W)/L + V W (L-2)/L^2), closed form", {c.c3},
        measured.c.c3, measured.c_error.c3);
    if (L < 3) continue;
    add("c1 > 0", "for L >= 3", {0, Relation::at_least}, measured.c.c1, measured.c_error.c1);
    add("c3 > 0", "for L >= 3", {0, Relation::at_least}, measured.c.c3, measured.c_error.c3);
  }
  return rows;
}

// Two groups of heads on a learnt feature: the next one grows fastest within the groups.
std::vector<Row> orthogonal_growth() {
  std::vector<Row> rows;
  for (const int L : {3, 5, 20}) {
    const ProblemOptions options = setting("softmax", "gaussian", L, 4, 2, {3, 1});
    const auto engine = quadrature(Problem(options), 1e-10);
    Vector u(4);
    u << 1, 1, -1, -1;
    const Matrix block = growth_block(*engine, 0.1 * u);
    const SymmetricEigen solver(block);
    Row row{"Lemma III.2 (A.6) orthogonal", "a new feature grows orthogonally to the learnt one"};
    row.setting =
        text(options) + "; m_:1 = 0.1 (1, 1, -1, -1): overlap of the fastest mode with it";
    row.measured = std::abs(solver.eigenvectors().col(0).dot(u.normalized()));
    row.error = 1e-7;
    row.error_kind = "rounding over the gap";
    rows.push_back(row);
    row.statement = "because growth along it is slower by c3 |m_:1|^2, to leading order";
    row.setting = text(options) + "; m_:1 = 0.1 (1, 1, -1, -1): curvature along minus across";
    const Vector along = u.normalized();
    Vector across(4);
    across << 1, -1, 1, -1;
    across.normalize();
    const double predicted = specialisation_constants(L, 4, 1, 3).c3 * 0.01 * u.squaredNorm();
    row.predicted = {predicted};
    row.measured = along.dot(block * along) - across.dot(block * across);
    row.error = 1e-9;
    row.error_kind = "tolerance of the quadrature";
    row.slack = 0.06 * predicted;  // the next order
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::vector<Claim> specialisation_claims() {
  return {{"Lemma III.2 (A.6)", "its constants", 1, constants, "c1 c2 c3 > 0"},
          {"Lemma III.2 (A.6) orthogonal", "a new feature grows across", 1, orthogonal_growth}};
}

}  // namespace headflow
