// The time at which heads part: proposition III.4. Heads that have not parted differ by D^(-1/2),
// and this grows as e^(lambda tau), -lambda the lowest curvature at the saddle of equal heads.

#include <cmath>

#include "analysis/phases.h"
#include "sgd/sgd.h"
#include "verify/claim.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

constexpr double kParted = 0.5;  // |m_12 - m_22|

/// The rate lambda at which heads part where equal heads end.
double escape_rate(const Problem& problem, const Context& context) {
  const Point saddle =
      unspecialised_end(problem, on_one_core(1e-8), problem.start_point().blocks, context);
  const auto engine = quadrature(problem, 1e-8, context);
  engine->adapt(saddle);
  return -hessian(*engine, saddle).eigenvalues[0];
}

/// The rate at which heads part at each time of the flow of heads that do not: minus the curvature
/// along m_12 - m_22, which by symmetry is an eigenvector.
double slope_along_the_flow(const Problem& problem, double first, double log_ratio,
                            const Context& context) {
  FlowOptions flow;
  flow.time = 3 * first;
  flow.outputs = 150;
  const Point start = initial_point(problem, 0, 1);
  const Trajectory t = flow_from(problem, start, flow, on_one_core(1e-8), context);
  const auto engine = quadrature(problem, 1e-8, context);
  Point direction = problem.zero_point(), product;
  direction.m(0, 1) = std::sqrt(0.5);
  direction.m(1, 1) = -std::sqrt(0.5);
  // tau_s is where the integral of the rate is (1/2) log D and a constant.
  double sum = 0, last = 0;
  for (std::size_t i = 0; i < t.time.size(); ++i) {
    if (t.time[i] < first) continue;
    engine->adapt(t.point[i]);
    engine->hessian_product(t.point[i], direction, product);
    const double rate = -(product.m.array() * direction.m.array()).sum();
    if (last > 0) {
      const double more = 0.5 * (rate + last) * (t.time[i] - t.time[i - 1]);
      if (sum + more > 0.5 * log_ratio) {
        const double share = (0.5 * log_ratio - sum) / more;
        return (t.time[i - 1] + share * (t.time[i] - t.time[i - 1]) - first) / log_ratio;
      }
      sum += more;
    } else {
      sum = rate * (t.time[i] - first);
    }
    last = rate;
  }
  return std::nan("");
}

/// Starts at different D are the same noise, times D^(-1/2): nothing but D differs.
std::vector<Row> parting_of_the_flow(const char* activation, Effort effort,
                                     const Context& context) {
  const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2}, 0.1);
  const Problem problem(options);
  FlowOptions flow;
  flow.integrator = Scheme::implicit;
  flow.rtol = 1e-7;
  flow.atol = 1e-12;
  flow.time = 1000;
  flow.outputs = 2000;
  std::vector<double> log_D, time;
  for (double D = 1e6; D < 2e12; D *= by(effort, 100, 10)) {
    const Point start = initial_point(problem, 1 / std::sqrt(D), 3);
    const Trajectory t =
        flow_from(problem, start, flow, on_one_core(1e-8), context, [&](const Point& point) {
          return 2 * head_spread(point, Vector::Unit(2, 1)) >= 1.2 * kParted;
        });
    std::vector<double> apart;
    for (const Point& point : t.point) apart.push_back(2 * head_spread(point, Vector::Unit(2, 1)));
    log_D.push_back(std::log(D));
    time.push_back(first_crossing(t.time, apart, kParted));
  }
  const Measured slope = slope_of(log_D, time);
  Row row{"Prop. III.4", "tau_s grows as log D with the slope 1/(2 lambda) of the Hessian"};
  row.setting = text(options) + ", eta 0.1; flow, D = 10^6 ... 10^12";
  row.predicted = {1 / (2 * escape_rate(problem, context))};
  if (problem.layout()->find("v")) {
    // The biases of equal heads of softmax-1 go to minus infinity, but as slowly as a logarithm:
    // at every D that can be written down heads part on the way.
    row.statement = "softmax-1: tau_s grows as log D with the slope of the rate along the flow";
    row.predicted = {
        slope_along_the_flow(problem, time.front(), log_D.back() - log_D.front(), context)};
  }
  row.measured = slope.value;
  row.error = slope.error;
  row.error_kind = ErrorKind::slope;
  row.slack = 0.01 * row.predicted.value;  // R decays as a power of time, and lambda with it
  row.smallest_wrong = 0.9 * row.predicted.value;
  return {row};
}

/// The start of the paper's law for eta = 0.1 without its scatter: heads differ along the second
/// feature by D^(-1/2) exactly.
SgdState apart_by_one_over_root(const Problem& problem, double D) {
  Point start = problem.start_point();
  start.m(0, 1) = 0.5 / std::sqrt(D);
  start.m(1, 1) = -start.m(0, 1);
  start.R = 0.1 * Matrix::Identity(2, 2);
  return state_with(Matrix::Identity(2, 2), start);
}

/// Times at which runs at one D part.
std::vector<double> parting_times(const Problem& problem, const SgdOptions& sgd, std::uint64_t seed,
                                  const Context& context) {
  const SgdState start = apart_by_one_over_root(problem, static_cast<double>(sgd.dim));
  Sgd runs(problem, sgd, seed, std::vector<SgdState>(static_cast<std::size_t>(sgd.runs), start),
           context);
  const auto all_parted = [&] {
    return std::ranges::all_of(runs.recorded(), [](const std::vector<SgdRecord>& run) {
      if (run.empty()) return false;
      const Matrix m = run.back().state.m();
      return std::abs(m(0, 1) - m(1, 1)) > 1.2 * kParted;
    });
  };
  while (!runs.finished() && !all_parted()) advance_whole(runs);
  std::vector<double> out;
  for (const auto& run : runs.recorded()) {
    std::vector<double> times, apart;
    for (std::size_t i = 0; i < run.size(); ++i) {
      const Matrix m = run[i].state.m();
      times.push_back(sgd.lr * static_cast<double>(runs.output_steps()[i]));
      apart.push_back(std::abs(m(0, 1) - m(1, 1)));
    }
    out.push_back(first_crossing(times, apart, kParted));
  }
  return out;
}

std::vector<Row> parting_of_sgd(Effort effort, const Context& context) {
  const ProblemOptions options = setting("softmax", "flipping", 4, 2, 2, {2, 2}, 0.1);
  const Problem problem(options);
  const double lambda = escape_rate(problem, context);
  constexpr double kKappa = 0.05;
  std::vector<double> log_D;
  std::vector<Measured> time;
  std::uint64_t seed = 800;
  const double largest = by(effort, 1100, 11'000);
  for (double D = 100; D < largest; D *= std::sqrt(10.0)) {
    SgdOptions sgd;
    sgd.dim = static_cast<std::int64_t>(D);
    sgd.lr = 0.1;
    sgd.batch = static_cast<std::int64_t>(sgd.lr / kKappa * D);
    sgd.tau = 400;
    sgd.outputs = 800;
    sgd.runs = D < 5000 ? by(effort, 8, 32) : 8;
    log_D.push_back(std::log(D));
    time.push_back(mean_of(parting_times(problem, sgd, ++seed, context)));
  }
  const Measured slope = slope_of(log_D, time);
  Row row{"Prop. III.4", "the same slope for SGD: N = D tau_s / lr of order D log D samples"};
  row.setting = fmt::format("{}, eta 0.1, heads D^(-1/2) apart; D = 10^2 ... {}, lr 0.1, N_b = 2 D",
                            text(options), by(effort, "10^3", "10^4"));
  row.predicted = {1 / (2 * lambda)};
  row.measured = slope.value;
  row.error = slope.error;
  row.error_kind = ErrorKind::runs;
  row.slack = 0.03 * row.predicted.value;  // kappa is 0.05, not 0
  row.smallest_wrong = 1.15 * row.predicted.value;
  return {row};
}

}  // namespace

std::vector<Claim> parting_claims(Effort effort) {
  std::vector<Claim> out;
  for (const char* activation : kActivations) {
    out.push_back(
        {"Prop. III.4", fmt::format("parting of the flow, {}", activation), by(effort, 2.0, 5.0),
         [=](const Context& context) { return parting_of_the_flow(activation, effort, context); }});
  }
  out.push_back({"Prop. III.4", "parting of SGD", by(effort, 8.0, 60.0),
                 [=](const Context& context) { return parting_of_sgd(effort, context); }});
  return out;
}

}  // namespace headflow
