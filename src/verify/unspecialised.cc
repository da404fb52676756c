// The unspecialised phase: proposition III.3. Flows from the law of the overlaps at dimension D,
// which a flow knows no other way; every D and every run has random numbers of its own.

#include <cmath>

#include "analysis/phases.h"
#include "sgd/state.h"
#include "verify/claim.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

/// Of one run, at the time tau_u when the mean of m_h1 is 0.3.
struct Phase {
  double time, apart, across, biases;
};

Phase until_tau_u(const Problem& problem, double D, std::uint64_t seed, std::uint32_t run,
                  const Context& context) {
  const SgdState law = initial_state(problem, static_cast<std::int64_t>(D), seed, run);
  Point start = problem.start_point();
  start.m = law.U;
  start.R = law.Lambda;
  FlowOptions flow;
  flow.time = 8;
  flow.outputs = 80;
  const Trajectory t = flow_from(problem, start, flow, on_one_core(1e-6), context,
                                 [](const Point& point) { return point.m.col(0).mean() >= 0.3; });
  std::vector<double> along;
  for (const Point& point : t.point) along.push_back(point.m.col(0).mean());
  Phase out{first_crossing(t.time, along, 0.3), 0, 0, 0};
  std::size_t i = 0;
  while (i + 1 < t.time.size() && !(t.time[i] >= out.time)) ++i;
  const Point& point = t.point[i];
  out.apart = point.m(0, 0) - point.m(1, 0);
  out.across = point.m.col(1).norm();
  out.biases = biases(point)[0] - biases(point)[1];
  return out;
}

std::vector<Row> unspecialised_phase(const char* activation, std::uint64_t number, Effort effort,
                                     const Context& context) {
  const ProblemOptions options = setting(activation, "flipping", 10, 2, 2, {2, 2});
  const Problem problem(options);
  const int runs = by(effort, 60, 60);
  std::vector<double> log_D;
  std::vector<Measured> time, apart, across, biases;
  std::uint64_t seed = 600 + 10 * number;
  for (double D = 1e2; D < 2e8; D *= by(effort, 1000, 100)) {
    std::vector<double> times, heads, others, b;
    ++seed;
    for (int run = 0; run < runs; ++run) {
      const Phase one = until_tau_u(problem, D, seed, static_cast<std::uint32_t>(run), context);
      times.push_back(one.time);
      heads.push_back(one.apart * one.apart);
      others.push_back(one.across * one.across);
      b.push_back(one.biases * one.biases);
    }
    log_D.push_back(std::log(D));
    time.push_back(mean_of(times));
    apart.push_back(log_rms(heads));
    across.push_back(log_rms(others));
    biases.push_back(log_rms(b));
  }
  const std::string where =
      fmt::format("{}; flow from the law of D = 10^2 ... 10^8, {} runs each", text(options), runs);
  const auto row = [&](const char* statement, const std::vector<Measured>& y, double predicted,
                       double wrong) {
    const Measured slope = slope_of(log_D, y);
    Row out{"Prop. III.3", statement, where, {predicted}};
    out.measured = slope.value;
    out.error = slope.error;
    out.error_kind = ErrorKind::slope;
    out.smallest_wrong = wrong;
    return out;
  };
  // A time that grew by half over the six decades would be a reader's concern.
  const double wrong_time = 0.5 * time.back().value / (log_D.back() - log_D.front());
  std::vector<Row> rows = {
      row("tau_u = Theta(1): slope of the time at which m_h1 = 0.3 against log D", time, 0,
          wrong_time),
      row("heads differ by D^(-1/2): exponent of |m_11 - m_21| at tau_u", apart, -0.5, -0.4),
      row("m_h is along E theta up to D^(-1/2): exponent of |m_:2| at tau_u", across, -0.5, -0.4)};
  if (problem.layout()->find("b")) {
    rows.push_back(row("biases stay unspecialised up to D^(-1/2): exponent of |b_1 - b_2| at tau_u",
                       biases, -0.5, -0.4));
  }
  return rows;
}

}  // namespace

std::vector<Claim> unspecialised_claims(Effort effort) {
  std::vector<Claim> out;
  std::uint64_t number = 0;
  for (const char* activation : kActivations) {
    ++number;
    out.push_back({"Prop. III.3", fmt::format("the unspecialised phase, {}", activation),
                   by(effort, 3.0, 9.0), [=](const Context& context) {
                     return unspecialised_phase(activation, number, effort, context);
                   }});
  }
  return out;
}

}  // namespace headflow
