// The loss is a function of the overlaps (proposition III.1), and that of softmax-1 near m = 0 one
// of bias and scale (lemma A.4).

#include <cmath>

#include "sgd/method.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

/// A point with nothing special about it.
Point generic_point(const Problem& problem) {
  const int H = problem.H(), F = problem.F();
  Point point = problem.zero_point();
  for (int h = 0; h < H; ++h) {
    for (int f = 0; f < F; ++f) point.m(h, f) = 0.9 * std::cos(1.0 + 2 * h + 3 * f);
    for (int k = 0; k < H; ++k) point.R(h, k) = 0.5 * (h == k) + 0.2 * std::sin(1.0 + h + 2 * k);
    if (point.blocks.has("b")) point["b"][h] = 0.3 * std::cos(2.0 + h);
  }
  set_block(point, "v", 1.3);
  return point;
}

Evaluation with_errors(Engine& engine, const Point& point) {
  Evaluation e;
  engine.adapt(point);
  engine.evaluate(point, {.gradient_error = true}, e);
  return e;
}

// The loss over sequences in D dimensions, with vectors written out and with their law.
std::vector<Row> loss_of_vectors(Effort effort, const Context& context) {
  std::vector<Row> rows;
  for (const char* activation : kActivations) {
    const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2});
    const Problem problem(options);
    const Point point = generic_point(problem);
    Evaluation e;
    quadrature(problem, 1e-9, context)->evaluate(point, {}, e);
    const SgdState state = state_with(Matrix::Identity(2, 2), point);
    for (const bool direct : {true, false}) {
      const std::int64_t batch =
          direct ? by(effort, 20'000, 60'000) : by(effort, 400'000, 4'000'000);
      const SgdSetting run{direct ? 1000 : 1'000'000, batch, 0.0, 11, 0};
      const Workers one;
      const BatchLoss loss = direct ? make_direct(problem, run, state, one)->step(0, context)
                                    : make_reduced(problem, run, state, one)->step(0, context);
      Row row{"Prop. III.1", "the loss of k in D dimensions is E(m, R, b, v)"};
      row.setting = fmt::format("{}; D = {}{}", text(options), run.dimension,
                                direct ? ", vectors written out" : "");
      row.predicted = {e.loss};
      row.measured = loss.mean;
      row.error = loss.error;
      row.error_kind = ErrorKind::replicas;
      row.slack = 3.0 / static_cast<double>(run.dimension);  // the limit is D -> infinity
      row.smallest_wrong = (direct ? 1.05 : 1.01) * e.loss;
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<Row> bias_and_scale(const Context& context) {
  std::vector<Row> rows;
  for (const int L : {2, 5, 20}) {
    for (const int H : {1, 4}) {
      const ProblemOptions options = setting("softmax-1", "flipping", L, H, 2, {2, 2});
      const Problem problem(options);
      const auto engine = quadrature(problem, 1e-11, context);
      for (const double b : {-1.0, 0.5}) {
        const double Z = L + std::exp(b), v = 0.8, excess = L * v / Z - 1;
        Point point = problem.zero_point();
        set_block(point, "b", b);
        set_block(point, "v", v);
        const Evaluation e = with_errors(*engine, point);
        Row row{"Lemma A.4", "grad_b E = -2 (L v/Z - 1) (v/H) e^b / Z^2, Z = L + e^b"};
        row.setting = fmt::format("{}; m = R = 0, b = {}, v = {}", text(options), b, v);
        row.predicted = {-2 * excess * (v / H) * std::exp(b) / (Z * Z)};
        row.measured = e.grad["b"][0];
        row.error = std::max(e.grad_error["b"].maxCoeff(), 1e-15);
        row.error_kind = ErrorKind::refinement;
        row.slack = 1e-13;
        row.smallest_wrong = row.predicted.value * 1.001;
        rows.push_back(row);
        row.statement = "grad_v E = 2 (L v/Z - 1) / Z";
        row.predicted = {2 * excess / Z};
        row.measured = e.grad["v"][0];
        row.error = std::max(e.grad_error["v"][0], 1e-15);
        row.smallest_wrong = row.predicted.value * 1.001;
        rows.push_back(row);

        // Across the line of fixed points L v = Z the curvature is positive: it attracts.
        set_block(point, "v", Z / L);
        Point direction = problem.zero_point(), product;
        set_block(direction, "v", 1);
        engine->adapt(point);
        engine->hessian_product(point, direction, product);
        row.statement = "the fixed points L v = L + e^b attract: curvature 2 L / Z^2 in v";
        row.setting = fmt::format("{}; m = R = 0, b = {}", text(options), b);
        row.predicted = {2 * L / (Z * Z)};
        row.measured = product["v"][0];
        row.error = engine->tolerance();
        row.error_kind = ErrorKind::assumed;
        row.smallest_wrong = row.predicted.value * 1.001;
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace

std::vector<Claim> loss_claims(Effort effort) {
  return {{"Prop. III.1", "the loss depends on overlaps only", by(effort, 1.0, 4.0),
           [effort](const Context& context) { return loss_of_vectors(effort, context); }},
          {"Lemma A.4", "bias and scale of softmax-1", 0.2, bias_and_scale}};
}

}  // namespace headflow
