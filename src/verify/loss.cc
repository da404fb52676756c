// The loss is a function of the overlaps, and its gradient on the unspecialised manifold:
// proposition III.1, lemmas A.1 to A.4.

#include <cmath>

#include "sgd/method.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

constexpr const char* kQuadrature = "refinement difference";

/// A point with nothing special about it.
Point generic_point(const Problem& problem) {
  const int H = problem.H(), F = problem.F();
  Point point = Point::zero(H, F);
  for (int h = 0; h < H; ++h) {
    for (int f = 0; f < F; ++f) point.m(h, f) = 0.9 * std::cos(1.0 + 2 * h + 3 * f);
    for (int k = 0; k < H; ++k) point.R(h, k) = 0.5 * (h == k) + 0.2 * std::sin(1.0 + h + 2 * k);
    if (problem.activation().info().trains_b) point.b[h] = 0.3 * std::cos(2.0 + h);
  }
  point.v = problem.activation().info().trains_v ? 1.3 : 1.0;
  return point;
}

Point unspecialised(const Problem& problem, const Vector& m, double r1, double r2) {
  const int H = problem.H();
  Point point = Point::zero(H, problem.F());
  point.m = Vector::Ones(H) * m.transpose();
  point.R = r1 * Matrix::Identity(H, H) + r2 * Matrix::Ones(H, H);
  if (problem.activation().info().trains_b) point.b.setConstant(0.3);
  point.v = problem.activation().info().trains_v ? 1.1 : 1.0;
  return point;
}

Evaluation with_errors(Engine& engine, const Point& point) {
  Evaluation e;
  engine.adapt(point);
  engine.evaluate(point, {.gradient_error = true}, e);
  return e;
}

// The loss over sequences in D dimensions, with vectors written out and with their law.
std::vector<Row> loss_of_vectors() {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2});
    const Problem problem(options);
    const Point point = generic_point(problem);
    Evaluation e;
    quadrature(problem, 1e-9)->evaluate(point, {}, e);
    const SgdState state = state_with(Matrix::Identity(2, 2), point.m, point.R, point.b, point.v);
    for (const bool direct : {true, false}) {
      const SgdSetting run{direct ? 2000 : 1'000'000, direct ? 60'000 : 4'000'000, 0.0, 11, 0};
      const Workers one(1);
      const BatchLoss loss = direct ? make_direct(problem, run, state, one)->step(0)
                                    : make_reduced(problem, run, state, one)->step(0);
      Row row{"Prop. III.1", "the loss of k in D dimensions is E(m, R, b, v)"};
      row.setting = fmt::format("{}; D = {}{}", text(options), run.dimension,
                                direct ? ", vectors written out" : "");
      row.predicted = {e.loss};
      row.measured = loss.mean;
      row.error = loss.error;
      row.error_kind = "standard error";
      row.slack = 3.0 / static_cast<double>(run.dimension);  // the limit is D -> infinity
      rows.push_back(row);
    }
  }
  return rows;
}

// m_h = m~, R = r1 I + r2 11^T, b_h = b~: the gradient is of the same form.
std::vector<Row> invariant_manifold() {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "flipping", 4, 3, 2, {2, 2});
    const Problem problem(options);
    const auto engine = quadrature(problem, 1e-7);
    const Evaluation e =
        with_errors(*engine, unspecialised(problem, Eigen::Vector2d(0.7, -0.4), 0.8, 0.2));
    double off = 0;
    for (int h = 0; h < 3; ++h) {
      off = std::max(off, (e.grad.m.row(h) - e.grad.m.row(0)).cwiseAbs().maxCoeff());
      off = std::max(off, std::abs(e.grad.b[h] - e.grad.b[0]));
      off = std::max(off, std::abs(e.grad.R(h, h) - e.grad.R(0, 0)));
      for (int k = 0; k < 3; ++k) {
        if (k != h) off = std::max(off, std::abs(e.grad.R(h, k) - e.grad.R(0, 1)));
      }
    }
    Row row{"Lemma A.1", "the gradient has no part off the unspecialised manifold"};
    row.setting = text(options);
    row.measured = off;
    row.error = std::max(
        {e.grad_error.m.maxCoeff(), e.grad_error.R.maxCoeff(), e.grad_error.b.maxCoeff(), 1e-12});
    row.error_kind = kQuadrature;
    rows.push_back(row);
  }
  return rows;
}

std::vector<Row> along_the_mean() {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2});
    const Problem problem(options);
    const Vector mean = problem.prior().mean();
    const auto engine = quadrature(problem, 1e-7);
    for (const double x : {0.0, 0.5}) {
      Point point = unspecialised(problem, x * mean, 1, 0);
      point.b.setZero();
      point.v = 1;
      const Evaluation e = with_errors(*engine, point);
      const Vector g = e.grad.m.row(0);
      Row row{"Lemma A.2", "grad_{m_h} E has no part orthogonal to E theta at m_h = x E theta"};
      row.setting = fmt::format("{}; x = {}", text(options), x);
      row.measured = (g - g.dot(mean) / mean.squaredNorm() * mean).cwiseAbs().maxCoeff();
      row.error = std::max(e.grad_error.m.maxCoeff(), 1e-12);
      row.error_kind = kQuadrature;
      rows.push_back(row);
      if (x > 0) continue;
      row.statement = "c1 > 0 in grad_{m_h} E = -c1 E theta at initialisation";
      row.predicted = {0, Relation::at_least};
      row.measured = -g.dot(mean) / mean.squaredNorm();
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<Row> no_force_on_r() {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "gaussian", 5, 3, 2, {3, 1});
    const Problem problem(options);
    Point point = generic_point(problem);
    point.R.setZero();
    const auto engine = quadrature(problem, 1e-7);
    const Evaluation e = with_errors(*engine, point);
    Row row{"Lemma A.3", "grad_R E = 0 at R = 0"};
    row.setting = text(options);
    row.measured = e.grad.R.cwiseAbs().maxCoeff();
    row.error = e.grad_error.R.maxCoeff();
    row.error_kind = kQuadrature;
    rows.push_back(row);
  }
  return rows;
}

std::vector<Row> bias_and_scale() {
  std::vector<Row> rows;
  for (const int L : {2, 5, 20}) {
    for (const int H : {1, 4}) {
      const ProblemOptions options = setting("softmax-1", "flipping", L, H, 2, {2, 2});
      const Problem problem(options);
      const auto engine = quadrature(problem, 1e-11);
      for (const double b : {-1.0, 0.5}) {
        const double Z = L + std::exp(b), v = 0.8, excess = L * v / Z - 1;
        Point point = Point::zero(H, 2);
        point.b.setConstant(b);
        point.v = v;
        const Evaluation e = with_errors(*engine, point);
        Row row{"Lemma A.4", "grad_b E = -2 (L v/Z - 1) (v/H) e^b / Z^2, Z = L + e^b"};
        row.setting = fmt::format("{}; m = R = 0, b = {}, v = {}", text(options), b, v);
        row.predicted = {-2 * excess * (v / H) * std::exp(b) / (Z * Z)};
        row.measured = e.grad.b[0];
        row.error = std::max(e.grad_error.b.maxCoeff(), 1e-15);
        row.error_kind = kQuadrature;
        row.slack = 1e-13;
        rows.push_back(row);
        row.statement = "grad_v E = 2 (L v/Z - 1) / Z";
        row.predicted = {2 * excess / Z};
        row.measured = e.grad.v;
        row.error = std::max(e.grad_error.v, 1e-15);
        rows.push_back(row);

        // Across the line of fixed points L v = Z the curvature is positive: it attracts.
        point.v = Z / L;
        Point direction = Point::zero(H, 2), product;
        direction.v = 1;
        engine->adapt(point);
        engine->hessian_product(point, direction, product);
        row.statement = "the fixed points L v = L + e^b attract: curvature 2 L / Z^2 in v";
        row.setting = fmt::format("{}; m = R = 0, b = {}", text(options), b);
        row.predicted = {2 * L / (Z * Z)};
        row.measured = product.v;
        row.error = engine->tolerance();
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace

std::vector<Claim> loss_claims() {
  return {{"Prop. III.1", "the loss depends on overlaps only", 6, loss_of_vectors},
          {"Lemma A.1", "the unspecialised manifold is invariant", 1, invariant_manifold},
          {"Lemma A.2", "the gradient points along the mean", 1, along_the_mean},
          {"Lemma A.3", "no force on R at R = 0", 1, no_force_on_r},
          {"Lemma A.4", "bias and scale of softmax-1", 1, bias_and_scale}};
}

}  // namespace headflow
