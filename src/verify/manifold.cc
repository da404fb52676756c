// The gradient on the unspecialised manifold, lemmas A.1 to A.3: parts of it that vanish. The
// factorised engine has these symmetries built in, so that they are measured with Monte Carlo and
// with vectors written out in D dimensions, too.

#include <cmath>
#include <functional>

#include "sgd/method.h"
#include "verify/claim.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

Point unspecialised(const Problem& problem, const Vector& m, double r1, double r2) {
  const int H = problem.H();
  Point point = problem.zero_point();
  point.m = Vector::Ones(H) * m.transpose();
  point.R = r1 * Matrix::Identity(H, H) + r2 * Matrix::Ones(H, H);
  set_block(point, "b", 0.3);
  set_block(point, "v", 1.1);
  return point;
}

/// A gradient, and which numbers of it must vanish.
using Parts =
    std::function<std::vector<double>(const Matrix& m, const Matrix& pairs, const Vector& b)>;

/// Steps of SGD in D dimensions from one point, each with a batch of its own.
struct Vectors {
  static constexpr int kDimension = 200;
  static constexpr double kRate = 1;
  const Problem& problem;
  const Point& point;
  std::int64_t batch;

  SgdState after_a_step(std::uint32_t replica, const Context& context) const {
    const SgdState start = state_with(Matrix::Identity(problem.F(), problem.F()), point);
    const SgdSetting run{kDimension, batch, kRate, 21, replica};
    const Workers one;
    const auto method = make_direct(problem, run, start, one);
    method->step(0, context);
    return method->state();
  }
};

/// The largest of numbers that must vanish, each the mean of independent replicas.
struct Largest {
  double value = 0, error = 0;

  explicit Largest(const std::vector<std::vector<double>>& replicas) {
    for (std::size_t k = 0; k < replicas[0].size(); ++k) {
      std::vector<double> x;
      for (const std::vector<double>& one : replicas) x.push_back(one[k]);
      const Measured mean = mean_of(x);
      value = std::max(value, std::abs(mean.value));
      error = std::max(error, mean.error);
    }
  }
};

constexpr int kReplicas = 64;

/// Rows of one statement, a row for each way to measure it. `size` is that of the gradient.
std::vector<Row> three_ways(const Row& statement, const Problem& problem, const Point& point,
                            const Parts& parts, Effort effort, const Context& context) {
  std::vector<Row> rows;
  const auto add = [&](const char* how, double measured, double error, ErrorKind kind,
                       double wrong) {
    Row row = statement;
    row.setting += how;
    row.measured = measured;
    row.error = error;
    row.error_kind = kind;
    row.smallest_wrong = wrong;
    rows.push_back(row);
  };
  const auto engine = quadrature(problem, 1e-7, context);
  Evaluation e;
  engine->adapt(point);
  engine->evaluate(point, {.gradient_error = true}, e);
  const double size = e.grad.m.cwiseAbs().maxCoeff();
  double largest = 0;
  for (const double x : parts(e.grad.m, e.grad.R, biases(e.grad))) {
    largest = std::max(largest, std::abs(x));
  }
  add("; quadrature", largest, std::max(e.grad_error.max(), 1e-12), ErrorKind::refinement,
      1e-3 * size);

  std::vector<std::vector<double>> by_samples, by_vectors;
  for (int i = 0; i < kReplicas; ++i) {
    const auto replica = static_cast<std::uint32_t>(i);
    samples(problem, by(effort, 10'000, 40'000), replica, context)->evaluate(point, {}, e);
    by_samples.push_back(parts(e.grad.m, e.grad.R, biases(e.grad)));
    const Vectors vectors{problem, point, by(effort, 500, 2000)};
    const SgdState after = vectors.after_a_step(replica, context);
    // m moves by the gradient; q by what all heads have in common, if there is nothing else.
    by_vectors.push_back(parts((point.m - after.m()) / Vectors::kRate,
                               0.5 * (point.q() - after.q()) / Vectors::kRate,
                               (biases(point) - biases(point_of(after))) / Vectors::kRate));
  }
  const Largest mc(by_samples), direct(by_vectors);
  add("; Monte Carlo", mc.value, mc.error, ErrorKind::replicas, 0.1 * size);
  add("; vectors in D = 200 dimensions", direct.value, direct.error, ErrorKind::replicas,
      by(effort, 0.5, 0.2) * size);
  return rows;
}

// m_h = m~, R = r1 I + r2 11^T, b_h = b~: the gradient is of the same form.
std::vector<Row> invariant_manifold(const char* activation, Effort effort, const Context& context) {
  const ProblemOptions options = setting(activation, "flipping", 4, 3, 2, {2, 2});
  const Problem problem(options);
  Row row{"Lemma A.1", "the gradient has no part off the unspecialised manifold", text(options)};
  const auto off = [](const Matrix& m, const Matrix& pairs, const Vector& b) {
    std::vector<double> out;
    for (Eigen::Index h = 1; h < 3; ++h) {
      for (Eigen::Index f = 0; f < 2; ++f) out.push_back(m(h, f) - m(0, f));
      out.push_back(pairs(h, h) - pairs(0, 0));
      out.push_back(b[h] - b[0]);
    }
    out.push_back(pairs(0, 2) - pairs(0, 1));
    out.push_back(pairs(1, 2) - pairs(0, 1));
    return out;
  };
  return three_ways(row, problem, unspecialised(problem, Eigen::Vector2d(0.7, -0.4), 0.8, 0.2), off,
                    effort, context);
}

std::vector<Row> along_the_mean(const char* activation, Effort effort, const Context& context) {
  std::vector<Row> rows;
  const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2});
  const Problem problem(options);
  const Vector mean = problem.prior().mean();
  const Parts orthogonal = [&](const Matrix& m, const Matrix& /*pairs*/, const Vector& /*b*/) {
    std::vector<double> out;
    for (Eigen::Index h = 0; h < m.rows(); ++h) {
      out.push_back((m(h, 0) * mean[1] - m(h, 1) * mean[0]) / mean.norm());
    }
    return out;
  };
  for (const double x : {0.0, 0.5}) {
    Point point = unspecialised(problem, x * mean, 1, 0);
    set_block(point, "b", 0);
    set_block(point, "v", 1);
    Row row{"Lemma A.2", "grad_{m_h} E has no part orthogonal to E theta at m_h = x E theta",
            fmt::format("{}; x = {}", text(options), x)};
    for (Row& one : three_ways(row, problem, point, orthogonal, effort, context))
      rows.push_back(one);
    if (x > 0) continue;
    std::vector<double> c;
    for (int i = 0; i < 16; ++i) {
      Evaluation e;
      samples(problem, 20'000, static_cast<std::uint64_t>(i), context)->evaluate(point, {}, e);
      c.push_back(-e.grad.m.row(0).dot(mean) / mean.squaredNorm());
    }
    const Measured over = mean_of(c);
    Evaluation e;
    quadrature(problem, 1e-8, context)->evaluate(point, {}, e);
    row.statement = "c1 > 0 in grad_{m_h} E = -c1 E theta at initialisation";
    row.setting += "; Monte Carlo";
    row.predicted = {0, Relation::at_least};
    row.measured = over.value;
    row.error = over.error;
    row.error_kind = ErrorKind::replicas;
    row.smallest_wrong = -1.2 * e.grad.m.row(0).dot(mean) / mean.squaredNorm();  // too much
    rows.push_back(row);
  }
  return rows;
}

Point spread_heads(const Problem& problem) {
  Point point = unspecialised(problem, Eigen::Vector2d(0.3, 0.2), 0, 0);
  for (int h = 0; h < problem.H(); ++h) {
    for (int f = 0; f < problem.F(); ++f) point.m(h, f) = 0.9 * std::cos(1.0 + 2 * h + 3 * f);
  }
  return point;
}

std::vector<Row> no_force_on_r(const char* activation, Effort effort, const Context& context) {
  const ProblemOptions options = setting(activation, "gaussian", 5, 3, 2, {3, 1});
  const Problem problem(options);
  const Point point = spread_heads(problem);
  Row row{"Lemma A.3", "grad_R E = 0 at R = 0", text(options) + "; Monte Carlo"};
  std::vector<std::vector<double>> by_samples;
  double size = 0;
  for (int i = 0; i < kReplicas; ++i) {
    Evaluation e;
    samples(problem, by(effort, 5000, 20'000), static_cast<std::uint64_t>(i), context)
        ->evaluate(point, {}, e);
    const auto entries = e.grad.R.reshaped();
    by_samples.emplace_back(entries.begin(), entries.end());
    size = std::max(size, e.grad.m.cwiseAbs().maxCoeff());
  }
  const Largest mc(by_samples);
  row.measured = mc.value;
  row.error = mc.error;
  row.error_kind = ErrorKind::replicas;
  row.smallest_wrong = by(effort, 0.1, 0.05) * size;
  std::vector<Row> rows = {row};

  // In D dimensions a step leaves an orthogonal part of squared size |force|^2 + noise / N.
  std::vector<double> force, part;
  constexpr double kFew = 100;
  const double many = by(effort, 400.0, 1600.0);
  for (int i = 0; i < kReplicas; ++i) {
    double tr[2];
    for (const bool large : {false, true}) {
      const Vectors vectors{problem, point, static_cast<std::int64_t>(large ? many : kFew)};
      const SgdState after =
          vectors.after_a_step(static_cast<std::uint32_t>(2 * i + large), context);
      tr[large] = after.Lambda.squaredNorm() / (Vectors::kRate * Vectors::kRate);
    }
    force.push_back((many * tr[1] - kFew * tr[0]) / (many - kFew));
    part.push_back(tr[0]);
  }
  const Measured mean = mean_of(force);
  row.setting = text(options) + fmt::format(
                                    "; vectors in D = 200 dimensions: |mean force|^2, from "
                                    "batches of {} and {}",
                                    kFew, many);
  row.measured = mean.value;
  row.error = mean.error;
  row.smallest_wrong = mean_of(part).value;  // as large as the noise of a small batch
  rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<Claim> manifold_claims(Effort effort) {
  std::vector<Claim> out;
  const double cost = by(effort, 1.0, 4.0);
  for (const char* activation : kActivations) {
    out.push_back(
        {"Lemma A.1", fmt::format("the unspecialised manifold, {}", activation), cost,
         [=](const Context& context) { return invariant_manifold(activation, effort, context); }});
  }
  for (const char* activation : kActivations) {
    out.push_back(
        {"Lemma A.2", fmt::format("the gradient along the mean, {}", activation), cost,
         [=](const Context& context) { return along_the_mean(activation, effort, context); }});
  }
  for (const char* activation : kActivations) {
    out.push_back(
        {"Lemma A.3", fmt::format("no force on R at R = 0, {}", activation), cost,
         [=](const Context& context) { return no_force_on_r(activation, effort, context); }});
  }
  return out;
}

}  // namespace headflow
