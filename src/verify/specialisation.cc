// The Hessian during specialisation: lemma III.2, in full lemma A.6. The paper gives signs; the
// closed forms are those of theory/specialisation.h.

#include <cmath>

#include "analysis/growth.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

constexpr double kGrowthTolerance = 1e-11;

/// Four heads with unequal squares: they tell the three constants apart.
Vector learnt() {
  Vector u(4);
  for (int h = 0; h < 4; ++h) u[h] = std::cos(1.0 + 2 * h);
  return u.array() - u.mean();
}

std::vector<Row> growth_constants(const Context& context) {
  std::vector<Row> rows;
  for (const int L : {2, 3, 4, 5, 10, 20, 50}) {
    const double W = 3, V = 1;
    const ProblemOptions options = setting("softmax", "gaussian", L, 4, 2, {W, V});
    const auto engine = quadrature(Problem(options), kGrowthTolerance, context);
    const MeasuredGrowth measured = measure_growth(*engine, learnt());
    const SpecialisationConstants c = specialisation_constants(L, 4, V, W);
    // A reader would care for one per cent; at L = 2, where all vanish, for the size at L = 3.
    const SpecialisationConstants next = specialisation_constants(3, 4, V, W);
    const auto off = [&](double value, double at_three) {
      return L > 2 ? 1.01 * value : 0.01 * at_three;
    };
    const auto add = [&](const char* name, const char* statement, Prediction predicted,
                         double value, double error, double wrong) {
      Row row{fmt::format("Lemma III.2 (A.6) {}", name), statement};
      row.setting = text(options);
      row.predicted = predicted;
      row.measured = value;
      row.error = error;
      row.error_kind = ErrorKind::extrapolation;
      row.slack = 1e-7;
      row.smallest_wrong = wrong;
      rows.push_back(row);
    };
    add("c1", "= V W (L-1)(L-2)^2 / (H^2 L^5), closed form", {c.c1}, measured.c.c1,
        measured.c_error.c1, off(c.c1, next.c1));
    add("c2", "= 2 (L-1)(L-2) / (H L^4) (3 (V+W) - V W (L^2-12L+12) / 2L), closed form", {c.c2},
        measured.c.c2, measured.c_error.c2, off(c.c2, next.c2));
    add("c3", "= 2 (L-1)(L-2) / (H^2 L^3) (1 + (V+W)/L + V W (L-2)/L^2), closed form", {c.c3},
        measured.c.c3, measured.c_error.c3, off(c.c3, next.c3));
    if (L < 3) continue;
    add("c1 > 0", "for L >= 3", {0, Relation::at_least}, measured.c.c1, measured.c_error.c1,
        1.01 * c.c1);
    add("c3 > 0", "for L >= 3", {0, Relation::at_least}, measured.c.c3, measured.c_error.c3,
        1.01 * c.c3);
  }
  return rows;
}

// Two groups of heads on a learnt feature: the next one grows fastest within the groups.
std::vector<Row> orthogonal_growth(const Context& context) {
  std::vector<Row> rows;
  Vector u(4), across(4);
  u << 1, 1, -1, -1;
  across << 0.5, -0.5, 0.5, -0.5;
  const Vector along = u.normalized();
  for (const int L : {3, 5, 20}) {
    const ProblemOptions options = setting("softmax", "gaussian", L, 4, 2, {3, 1});
    // Twice, with different rules: what differs is the error.
    double overlap[2], slower[2];
    for (const int i : {0, 1}) {
      const auto engine = quadrature(Problem(options), i == 0 ? 1e-11 : 1e-8, context);
      const Matrix block = growth_block(*engine, 0.1 * u);
      const SymmetricEigen solver(block);
      overlap[i] = std::abs(solver.eigenvectors().col(0).dot(along));
      slower[i] = along.dot(block * along) - across.dot(block * across);
    }
    Row row{"Lemma III.2 (A.6) orthogonal", "a new feature grows orthogonally to the learnt one"};
    row.setting =
        text(options) + "; m_:1 = 0.1 (1, 1, -1, -1): overlap of the fastest mode with it";
    row.measured = overlap[0];
    row.error = std::abs(overlap[1] - overlap[0]) + 1e-12;
    row.error_kind = ErrorKind::refinement;
    row.smallest_wrong = 0.1;
    rows.push_back(row);
    row.statement = "because growth along it is slower by c3 |m_:1|^2, to leading order";
    row.setting = text(options) + "; m_:1 = 0.1 (1, 1, -1, -1): curvature along minus across";
    const double predicted = specialisation_constants(L, 4, 1, 3).c3 * 0.01 * u.squaredNorm();
    row.predicted = {predicted};
    row.measured = slower[0];
    row.error = std::abs(slower[1] - slower[0]) + 1e-14;
    row.slack = 0.06 * predicted;  // the next order
    row.smallest_wrong = 1.2 * predicted;
    rows.push_back(row);
  }
  return rows;
}

/// The Hessian in m_:3 at m_:1 = u, m_:2 = w.
Matrix third_feature(Engine& engine, const Vector& u, const Vector& w) {
  Point point = at_rest(engine.problem());
  point.m.col(0) = u;
  point.m.col(1) = w;
  engine.adapt(point);
  Matrix out(4, 4);
  for (int h = 0; h < 4; ++h) {
    Point direction = Point::zero_like(point), product;
    direction.m(h, 2) = 1;
    engine.hessian_product(point, direction, product);
    out.col(h) = product.m.col(2);
  }
  return out;
}

// Two learnt features act on a third one independently: the lemma's sum over i.
std::vector<Row> two_learnt_features(const Context& context) {
  std::vector<Row> rows;
  for (const int L : {3, 5, 20}) {
    const ProblemOptions options = setting("softmax", "gaussian", L, 4, 3, {3, 1});  // 3, 2, 1
    const auto engine = quadrature(Problem(options), kGrowthTolerance, context);
    Vector u = learnt(), w(4);
    w << 0.9, -0.2, -1.1, 0.4;
    const Matrix P = Matrix::Identity(4, 4) - Matrix::Constant(4, 4, 0.25);
    const Vector none = Vector::Zero(4);
    const Matrix at_zero = third_feature(*engine, none, none);
    // Second differences at two sizes, extrapolated; their difference is the error.
    Matrix sum[2], both[2];
    constexpr double kSizes[] = {0.06, 0.03};
    for (const int i : {0, 1}) {
      const double s = kSizes[i];
      sum[i] = P * (third_feature(*engine, s * u, s * w) - at_zero) * P / (s * s);
      both[i] = sum[i] - P * (third_feature(*engine, s * u, none) - at_zero) * P / (s * s) -
                P * (third_feature(*engine, none, s * w) - at_zero) * P / (s * s);
    }
    const SpecialisationConstants c = specialisation_constants(L, 4, 1, 3),
                                  d = specialisation_constants(L, 4, 1, 2);
    const auto part = [&](const SpecialisationConstants& k, const Vector& x) -> Matrix {
      return P *
             (k.c1 * x.squaredNorm() * Matrix::Identity(4, 4) +
              k.c2 * Matrix(x.cwiseAbs2().asDiagonal()) + k.c3 * x * x.transpose()) *
             P;
    };
    const Matrix predicted = part(c, u) + part(d, w);
    const Matrix better = sum[1] + (sum[1] - sum[0]) / 3;
    Row row{"Lemma III.2 (A.6) two", "two learnt features: the sum of what each one does"};
    row.setting = text(options) + "; largest entry off the closed forms";
    row.measured = (better - predicted).cwiseAbs().maxCoeff();
    row.error = (better - sum[1]).cwiseAbs().maxCoeff() / 4;
    row.error_kind = ErrorKind::next_order;
    row.smallest_wrong = 0.05 * predicted.cwiseAbs().maxCoeff();
    rows.push_back(row);
    row.statement = "no term of both: mixed second differences vanish";
    row.setting = text(options) + "; largest entry";
    const Matrix mixed = both[1] + (both[1] - both[0]) / 3;
    row.measured = mixed.cwiseAbs().maxCoeff();
    row.error = (mixed - both[1]).cwiseAbs().maxCoeff() / 4;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::vector<Claim> specialisation_claims(Effort /*effort*/) {
  return {{"Lemma III.2 (A.6)", "its constants", 1, growth_constants, "c1 c2 c3 > 0"},
          {"Lemma III.2 (A.6) orthogonal", "a new feature grows across", 1, orthogonal_growth},
          {"Lemma III.2 (A.6) two", "two learnt features", 1, two_learnt_features}};
}

}  // namespace headflow
