// SGD and its limit: proposition III.2, and what it becomes at a finite learning rate.

#include <cmath>

#include "sgd/sgd.h"
#include "verify/claim.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

Point off_the_saddle(const Problem& problem) {
  Point start = problem.start_point();
  start.m << 0.5, 0.3, 0.4, -0.2;
  start.R << 1.0, 0.0, 0.1, 0.9;
  problem.check(start);
  return start;
}

std::vector<std::vector<SgdRecord>> runs_from(const Problem& problem, const SgdOptions& sgd,
                                              const Point& start, std::uint64_t seed,
                                              const Context& context) {
  const SgdState first = state_with(Matrix::Identity(2, 2), start);
  Sgd runs(problem, sgd, seed, std::vector<SgdState>(static_cast<std::size_t>(sgd.runs), first),
           context);
  while (!runs.finished()) advance_whole(runs);
  return runs.recorded();
}

/// A limit of SGD from `start`. Gradients are exact; only second moments are sampled.
Point limit_of(const Problem& problem, const Point& start, const FlowOptions& flow,
               const Context& context) {
  return flow_from(problem, start, flow, on_one_core(1e-6), context).point.back();
}

// The deviation from the limit falls as D^(-1/2). At fixed kappa the limit is the one-step map.
// Every D has random numbers of its own.
std::vector<Row> approach(const char* activation, std::uint64_t number, Effort effort,
                          const Context& context) {
  const ProblemOptions options = setting(activation, "flipping", 4, 2, 2, {2, 2});
  const Problem problem(options);
  const Point start = off_the_saddle(problem);
  FlowOptions flow;
  flow.integrator = Scheme::map;
  flow.step = 0.1;
  flow.time = 2;
  flow.kappa = 1;
  flow.outputs = 1;
  const Point end = limit_of(problem, start, flow, context);

  std::vector<double> log_D;
  std::vector<Measured> deviation;
  std::uint64_t seed = 400 + 10 * number;
  // From 500 on: at D = 100 a batch of ten is not Gaussian.
  const double largest = by(effort, 3e4, 2e5);
  for (double D = 500; D < largest; D *= std::sqrt(50.0)) {
    SgdOptions sgd;
    sgd.dim = static_cast<std::int64_t>(D);
    sgd.batch = sgd.dim / 10;
    sgd.lr = 0.1;
    sgd.steps = 20;
    sgd.outputs = 1;
    sgd.runs = 128;
    std::vector<double> squares;
    for (const auto& run : runs_from(problem, sgd, start, ++seed, context)) {
      squares.push_back((run.back().state.m() - end.m).squaredNorm() +
                        (run.back().state.q() - end.q()).squaredNorm());
    }
    log_D.push_back(std::log(D));
    deviation.push_back(log_rms(squares));
  }
  const Measured slope = slope_of(log_D, deviation);
  Row row{"Prop. III.2",
          "SGD comes to its limit as D^(-1/2): exponent of the deviation of m and q"};
  row.setting = fmt::format("{}; lr 0.1, N = D/10, tau = 2, D = 500 ... {}, 128 runs each",
                            text(options), by(effort, "25,000", "180,000"));
  row.predicted = {-0.5};
  row.measured = slope.value;
  row.error = slope.error;
  row.error_kind = ErrorKind::slope;
  row.slack = 0.01;  // the next order in 1/D
  row.smallest_wrong = -0.4;
  return {row};
}

/// Root mean square deviation of m from the flow over the output times, and over runs its error.
Row follows_the_flow(const ProblemOptions& options, const SgdOptions& sgd, std::uint64_t seed,
                     const Context& context) {
  const Problem problem(options);
  const Point start = off_the_saddle(problem);
  const auto runs = runs_from(problem, sgd, start, seed, context);
  FlowOptions flow;
  flow.time = sgd.tau;
  flow.outputs = sgd.outputs;
  const Trajectory t = flow_from(problem, start, flow, on_one_core(1e-6), context);
  std::vector<double> squares;
  for (const auto& run : runs) {
    double mean = 0;
    for (std::size_t i = 1; i < run.size(); ++i) {
      mean +=
          (run[i].state.m() - t.point[i].m).squaredNorm() / 4 / static_cast<double>(run.size() - 1);
    }
    squares.push_back(mean * static_cast<double>(sgd.dim));
  }
  const Measured mean = mean_of(squares);
  Row row{"Prop. III.2"};
  row.setting = fmt::format("{}; D = {}, N_b = {}, lr {}, tau <= {}, {} runs", text(options),
                            sgd.dim, sgd.batch, sgd.lr, sgd.tau, sgd.runs);
  row.measured = std::sqrt(mean.value);
  row.error = 0.5 * mean.error / row.measured;
  row.error_kind = ErrorKind::runs;
  // What the noise of batches alone leaves, for rates so small that nothing else does.
  row.predicted = {0.2, Relation::at_most};
  row.smallest_wrong = 0.03;
  return row;
}

// The paper's own comparison, case (i): large batches.
std::vector<Row> as_in_the_paper(const char* activation, std::uint64_t number, Effort effort,
                                 const Context& context) {
  SgdOptions sgd;
  sgd.dim = sgd.batch = by(effort, 2000, 10'000);
  sgd.lr = 0.02;
  sgd.tau = by(effort, 10, 20);
  sgd.outputs = 10;
  sgd.runs = by(effort, 8, 6);
  Row row = follows_the_flow(setting(activation, "flipping", 5, 2, 2, {2, 2}), sgd, 500 + number,
                             context);
  row.statement = "SGD with N_b = D follows the flow: rms deviation of m times D^(1/2)";
  return {row};
}

// Case (ii): batches of one sample and a rate below 1/D.
std::vector<Row> one_sample_at_a_time(Effort effort, const Context& context) {
  SgdOptions sgd;
  sgd.dim = by(effort, 1000, 10'000);
  sgd.batch = 1;
  sgd.lr = 0.02 / static_cast<double>(sgd.dim);
  sgd.tau = by(effort, 3, 8);
  sgd.outputs = 10;
  sgd.runs = by(effort, 4, 2);
  Row row = follows_the_flow(setting("softmax", "flipping", 5, 2, 2, {2, 2}), sgd, 6, context);
  row.statement = "SGD with N_b = 1 and lr = 0.02/D follows it, too: the same";
  return {row};
}

// N_b = D: the flow is the limit only of small learning rates, as the paper says.
std::vector<Row> finite_rate(Effort effort, const Context& context) {
  const ProblemOptions options = setting("softmax", "flipping", 4, 2, 2, {2, 2});
  const Problem problem(options);
  const Point start = off_the_saddle(problem);
  SgdOptions sgd;
  sgd.dim = sgd.batch = by(effort, 20'000, 100'000);
  sgd.lr = 0.5;
  sgd.steps = 10;
  sgd.outputs = 1;
  sgd.runs = 16;
  std::vector<double> traces;
  for (const auto& run : runs_from(problem, sgd, start, 12, context)) {
    traces.push_back(run.back().state.q().trace());
  }
  const Measured sum = mean_of(traces);
  FlowOptions flow;
  flow.time = 5;
  flow.outputs = 1;
  const double by_flow = limit_of(problem, start, flow, context).q().trace();
  flow.integrator = Scheme::map;
  flow.step = flow.kappa = sgd.lr;
  Row row{"Extension 3", "SGD with N_b = D at a finite rate, 0.5, follows the one-step map: tr q"};
  row.setting = text(options) + fmt::format("; D = {}, tau = 5, 16 runs", sgd.dim);
  row.predicted = {limit_of(problem, start, flow, context).q().trace()};
  row.measured = sum.value;
  row.error = sum.error;
  row.error_kind = ErrorKind::runs;
  row.slack = 30.0 / static_cast<double>(sgd.dim);  // D is finite, and the map has samples
  // Half way to gradient flow, to which the paper's gamma = o(1) leads.
  row.smallest_wrong = 0.5 * (row.predicted.value + by_flow);
  return {row};
}

}  // namespace

std::vector<Claim> limit_claims(Effort effort) {
  std::vector<Claim> out;
  std::uint64_t number = 0;
  for (const char* activation : kActivations) {
    ++number;
    out.push_back(
        {"Prop. III.2", fmt::format("SGD's limit, {}", activation), by(effort, 1.0, 6.0),
         [=](const Context& context) { return approach(activation, number, effort, context); }});
    out.push_back({"Prop. III.2", fmt::format("SGD and flow, {}", activation),
                   by(effort, 2.0, 15.0), [=](const Context& context) {
                     return as_in_the_paper(activation, number, effort, context);
                   }});
  }
  out.push_back({"Prop. III.2", "one sample at a time", by(effort, 6.0, 80.0),
                 [=](const Context& context) { return one_sample_at_a_time(effort, context); }});
  out.push_back({"Extension 3", "finite learning rate", by(effort, 1.0, 6.0),
                 [=](const Context& context) { return finite_rate(effort, context); }});
  return out;
}

}  // namespace headflow
