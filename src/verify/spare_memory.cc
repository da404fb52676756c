// What spare heads of B-softmax remember of their start: a statement of ours (docs/theory.md).
//
// dR/dtau = -G R with G_hk = E sum_l d^2 e / dchi_hl dchi_kl, e the loss of a sequence. With the
// weights Y_hl = e^(chi_hl + b_h), which e depends on through W_l = sum_h Y_hl alone,
//   G_hk = delta_hk dE/db_h + P_hk,   P_hk = E sum_l Y_hl Y_kl d^2 e / dW_l^2,
// and a head of small weight has small P: it forgets its R at the smallest eigenvalue of G, while
// heads at work forget theirs at the others.

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "verify/claim.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

constexpr int kParts = 20;  // of the samples, independent: errors are of their scatter

/// P by samples of whole sequences, and G with dE/db by the engine, which samples know less well.
struct Curvature {
  Measured smallest, next;  ///< eigenvalues of G
  Measured K;               ///< P_ss
};

Curvature by_samples(const Problem& problem, const Point& point, const Vector& slopes, int spare,
                     int samples, const Context& context) {
  const int H = problem.H(), F = problem.F(), L = problem.L();
  const Vector b = biases(point);
  const int each = samples / kParts;
  std::vector<double> smallest, next, K;
  for (int part = 0; part < kParts; ++part) {
    Matrix P = Matrix::Zero(H, H);
    for (int i = 0; i < each; ++i) {
      context.check();
      RandomStream stream(
          {1, Purpose::verify, 1},
          static_cast<std::uint64_t>(part) * 1'000'000'000 + static_cast<std::uint64_t>(i));
      Vector normals(F), theta(F);
      for (double& x : normals) x = stream.normal();
      problem.prior().sample(stream.uniform(), normals.data(), theta.data());
      Matrix chi(L, H);
      for (int l = 0; l < L; ++l) {
        Vector x(F), xi(H);
        for (double& y : x) y = stream.normal();
        for (double& y : xi) y = stream.normal();
        if (l == 0) x += theta;
        chi.row(l) = (point.m * x + point.R * xi + b).transpose();
      }
      const Matrix Y = (chi.array() - chi.maxCoeff()).exp();
      const Vector W = Y.rowwise().sum();
      const double Z = W.sum();
      const Vector a = W / Z;
      const double A = a.squaredNorm();
      for (int l = 0; l < L; ++l) {
        const double hit = l == 0 ? 1 : 0;
        const double bend = 2 / (Z * Z) * (1 - 4 * a[l] + 2 * hit + 3 * A - 2 * a[0]);
        P += bend * Y.row(l).transpose() * Y.row(l);
      }
    }
    P /= each;
    K.push_back(P(spare, spare));
    P.diagonal() += slopes;
    const Vector eigenvalues = SymmetricEigen(P).eigenvalues();
    smallest.push_back(eigenvalues[0]);
    next.push_back(eigenvalues[1]);
  }
  return {mean_of(smallest), mean_of(next), mean_of(K)};
}

int head_with_most_R(const Point& point) {
  Eigen::Index spare = 0;
  point.R.rowwise().norm().maxCoeff(&spare);
  return static_cast<int>(spare);
}

/// log |R_h| of a head at a time of a run.
double log_R(const Trajectory& run, std::size_t i, int h) {
  return std::log(run.point[i].R.row(h).norm());
}

Trajectory flow_of(const Problem& problem, std::vector<double> times, double tolerance,
                   const Context& context) {
  FlowOptions flow;
  flow.integrator = Scheme::implicit;
  flow.time = times.back();
  flow.times = std::move(times);
  flow.rtol = 1e-6;
  flow.atol = 1e-8;
  const Point start = initial_point(problem, 0.01, 1);
  EngineOptions engine = on_one_core(tolerance);
  engine.engine = EngineName::factorised;
  return flow_from(problem, start, flow, engine, context);
}

// Two of three heads take the two signs of the only feature; the third is left over.
std::vector<Row> memory(double eta, int samples, const Context& context) {
  const ProblemOptions options = setting("b-softmax", "gaussian", 5, 3, 1, {16}, eta);
  const Problem problem(options);
  const Trajectory run = flow_of(problem, {0, 30, 90, 100, 110, 1000}, 1e-6, context);
  std::vector<Row> rows;
  const std::string where = fmt::format("{}, eta {}", text(options), eta);

  const Point& early = run.point[1];
  const int spare = head_with_most_R(early);
  Evaluation e;
  const auto engine = quadrature(problem, 1e-7, context);
  engine->evaluate(early, {.gradient_error = true}, e);
  const Matrix G = e.grad.R * early.R.inverse();
  const Curvature at_early = by_samples(problem, early, e.grad["b"], spare, samples, context);
  Row row{"Spare heads", "(grad_R E R^-1)_ss = dE/db_s + K, K = E sum Y^2 d^2 e / dY^2", where};
  row.setting += "; tau = 30: K by gradients and by samples";
  row.predicted = {at_early.K.value};
  row.measured = G(spare, spare) - e.grad["b"][spare];
  row.error = std::hypot(at_early.K.error, e.grad_error.max() * (1 + early.R.inverse().norm()));
  row.error_kind = ErrorKind::standard_error;
  row.smallest_wrong = 1.1 * row.predicted.value;
  rows.push_back(row);

  quadrature(problem, 1e-7, context)->evaluate(run.point[3], {}, e);
  const Curvature later = by_samples(problem, run.point[3], e.grad["b"], spare, samples, context);
  const double by_time = run.time[4] - run.time[2];
  row.statement = "a spare head forgets R at the smallest eigenvalue of G, not at K";
  row.setting = where + "; -d log|R_s| / dtau at tau = 100";
  row.predicted = {later.smallest.value};
  row.measured = (log_R(run, 2, spare) - log_R(run, 4, spare)) / by_time;
  row.error = later.smallest.error;
  row.slack = 0.05 * later.smallest.value;  // heads at work follow R_s with a delay
  row.smallest_wrong = std::min(later.K.value, 1.3 * later.smallest.value);
  rows.push_back(row);

  row.statement = "heads at work forget theirs at least ten times as fast: ratio of eigenvalues";
  row.setting = where + "; tau = 100";
  row.predicted = {10, Relation::at_least};
  row.measured = later.next.value / later.smallest.value;
  row.error = row.measured * std::hypot(later.next.error / later.next.value,
                                        later.smallest.error / later.smallest.value);
  row.slack = 0;
  row.smallest_wrong = 1000;
  rows.push_back(row);

  // e^b of the spare head does not vanish: it becomes a constant in the weight of every token.
  const auto ahead = [&](const Trajectory& trained) {
    const Vector b = biases(trained.point.back());
    double least = HUGE_VAL;
    for (Eigen::Index h = 0; h < b.size(); ++h) {
      if (h != spare) least = std::min(least, b[spare] - b[h]);
    }
    return least;
  };
  row.statement = "with a Gaussian signal a spare head ends with the largest bias: least b_s - b_h";
  row.setting = where + "; tau = 1000";
  row.predicted = {0, Relation::at_least};
  row.measured = ahead(run);
  row.error = std::abs(ahead(flow_of(problem, {0, 1000}, 1e-5, context)) - row.measured) + 1e-6;
  row.error_kind = ErrorKind::refinement;
  row.smallest_wrong = 5;
  rows.push_back(row);
  return rows;
}

// Where nothing is left to learn, e^(-2 w) of the spare weight w grows linearly: no end in finite
// time. w = b_s - log sum e^(b_h) over the heads at work.
std::vector<Row> fading(const Context& context) {
  const ProblemOptions options = setting("b-softmax", "flipping", 5, 3, 2, {4}, 0.3);
  const Problem problem(options);
  const auto ratio = [&](double tolerance) {
    const Trajectory run = flow_of(problem, {0, 1e4, 3e4, 1e5}, tolerance, context);
    const int spare = head_with_most_R(run.point[1]);
    const auto grown = [&](std::size_t i) {
      const Vector b = biases(run.point[i]);
      double others = 0;
      for (Eigen::Index h = 0; h < b.size(); ++h) others += h == spare ? 0 : std::exp(b[h]);
      return std::exp(-2 * b[spare]) * others * others;
    };
    const auto rate = [&](std::size_t from) {
      return (grown(from + 1) - grown(from)) / (run.time[from + 1] - run.time[from]);
    };
    return rate(2) / rate(1);
  };
  Row row{"Spare heads", "at the Bayes estimator e^(-2 b) of a spare head grows linearly in tau"};
  row.setting = fmt::format("{}, eta {}; its rate from 3e4 to 1e5 over that from 1e4 to 3e4",
                            text(options), options.eta);
  row.predicted = {1};
  row.measured = ratio(1e-6);
  row.error = std::abs(ratio(3e-6) - row.measured) + 1e-6;
  row.error_kind = ErrorKind::refinement;
  row.slack = 0.1;  // its m moves on, slowly
  row.smallest_wrong = 1.5;
  return {row};
}

}  // namespace

std::vector<Claim> spare_memory_claims(Effort effort) {
  std::vector<Claim> out;
  for (const double eta : {0.3, 1.0, 2.0}) {
    out.push_back({"Spare heads", fmt::format("eta = {}", eta), by(effort, 2.0, 5.0),
                   [=](const Context& context) {
                     return memory(eta, by(effort, 100'000, 400'000), context);
                   }});
  }
  if (effort == Effort::quick) return out;
  out.push_back({"Spare heads", "at the Bayes estimator", 15.0,
                 [](const Context& context) { return fading(context); }});
  return out;
}

}  // namespace headflow
