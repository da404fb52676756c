// What section IV says in words of more heads than are needed: the Bayes risk as a plateau, and
// pruning.

#include <algorithm>
#include <cmath>

#include "analysis/pruning.h"
#include "dynamics/flow.h"
#include "theory/bayes.h"
#include "verify/claim.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

/// The end of one flow from the paper's initial law.
Trajectory trained(const Problem& problem, double time, std::uint64_t seed) {
  FlowOptions flow;
  flow.integrator = Scheme::implicit;
  flow.time = time;
  flow.rtol = 1e-5;
  flow.atol = 1e-7;
  flow.outputs = 1;
  const Point start = initial_point(problem, 0.01, seed);
  Trajectory run;
  integrate_flow(*make_flow_engine(problem, on_one_core(1e-4), flow, start), start, flow, run);
  return run;
}

// A discrete prior with as many points as features.
std::vector<Row> plateau(int F, double nu, int heads, double eta, double time) {
  const ProblemOptions options = setting("b-softmax", "flipping", 5, heads, F, {nu}, eta);
  const Problem problem(options);
  const BayesRisk risk = bayes_risk(problem, {.tolerance = 1e-9});
  const Trajectory run = trained(problem, time, 1);
  Row row{"Claim plateau"};
  row.setting = fmt::format("{}; loss after tau = {} minus the Bayes risk", text(options), time);
  row.measured = run.loss.back() - risk.risk;
  row.error = run.loss_error.back() + risk.error;
  row.error_kind = ErrorKind::refinement;
  if (heads < F) {
    row.statement =
        "B-softmax with fewer heads than points of the prior stays above the Bayes risk";
    row.predicted = {0.01, Relation::at_least};
    row.smallest_wrong = 0.8 - risk.risk;  // ignorance
  } else {
    row.statement = "B-softmax trained with H >= the number of points attains the Bayes risk";
    row.slack = 1e-3;
    row.smallest_wrong = 0.01;
  }
  return {row};
}

// H - F heads can be pruned at little cost; the next one costs more.
std::vector<Row> pruning(const char* activation, const char* prior, int H, int F, double nu,
                         int starts) {
  const ProblemOptions options = setting(activation, prior, 5, H, F, {nu});
  const Problem problem(options);
  std::vector<double> costs, kinks;
  double error = 0;
  for (int i = 0; i < starts; ++i) {
    const Trajectory run = trained(problem, 2000, static_cast<std::uint64_t>(i) + 1);
    const std::vector<PruningStep> steps = prune(problem, run.point.back(), on_one_core(1e-5));
    const auto prunable = static_cast<std::size_t>(H - F);
    const double rise = steps[prunable].loss - steps[0].loss;
    costs.push_back(rise / steps[0].loss);
    kinks.push_back(steps[prunable + 1].loss - steps[prunable].loss - 2 * rise / (H - F));
    error = std::max(error, (steps[0].error + steps[prunable].error) / steps[0].loss);
  }
  const Measured cost = mean_of(costs), kink = mean_of(kinks);
  const std::string where = fmt::format("{}; mean of {} starts", text(options), starts);
  Row row{"Claim pruning", "H - F heads can be pruned at little cost: relative rise of the loss",
          where};
  row.predicted = {0.15, Relation::at_most};
  row.measured = cost.value;
  row.error = std::hypot(cost.error, error);
  row.error_kind = ErrorKind::starts;
  row.smallest_wrong = -0.01;  // pruning does not help, either
  // The rise is the same as for a discrete prior, but the loss it is held against is much lower.
  if (std::string(activation) == "softmax-1" && std::string(prior) == "gaussian") {
    row.expected_instead = Verdict::fails;
    row.smallest_wrong = row.predicted.value;
  }
  std::vector<Row> rows = {row};
  row.expected_instead.reset();
  row.statement = "and not one more: its cost minus twice the mean cost of those before";
  row.predicted = {0, Relation::at_least};
  row.measured = kink.value;
  row.error = std::hypot(kink.error, error);
  row.smallest_wrong = 0.8;  // ignorance
  if (std::string(activation) == "softmax" && std::string(prior) == "gaussian") {
    // Five starts do not tell it from twice the mean.
    row.statement = "softmax, Gaussian: one more costs about twice the mean: the same difference";
    row.predicted = {0};
    row.smallest_wrong = 0.05;  // about what it is with softmax-1
  }
  rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<Claim> spare_heads_claims(Effort effort) {
  const bool quick = effort == Effort::quick;
  std::vector<Claim> out;
  for (const int heads : {1, 2, 3, 4}) {
    out.push_back({"Claim plateau", fmt::format("F = 2, H = {}", heads), 1.0 * heads,
                   [=] { return plateau(2, 4, heads, 1, quick ? 500 : 1000); }});
  }
  for (const int heads : {2, 3, 4}) {
    out.push_back({"Claim plateau", fmt::format("F = 3, H = {}", heads),
                   heads == 4 ? (quick ? 10.0 : 40.0) : 4.0, [=] {
                     return plateau(3, 10, heads, heads == 4 ? 0.1 : 1, quick ? 500 : 1000);
                   }});
  }
  for (const char* prior : {"flipping", "gaussian"}) {
    for (const std::string activation : {"softmax", "softmax-1"}) {
      // Three starts do not tell for softmax with a Gaussian prior.
      if (quick && activation == "softmax" && prior == std::string("gaussian")) continue;
      out.push_back({"Claim pruning", fmt::format("{}, {}", activation, prior),
                     quick                       ? 4.0
                     : activation == "softmax-1" ? 30.0
                                                 : 15.0,
                     [=] {
                       return quick ? pruning(activation.c_str(), prior, 6, 3, 10, 3)
                                    : pruning(activation.c_str(), prior, 8, 4, 10,
                                              activation == "softmax-1" ? 10 : 5);
                     }});
    }
  }
  out.push_back({"Claim pruning", "b-softmax, flipping", quick ? 8.0 : 15.0,
                 [=] { return pruning("b-softmax", "flipping", 4, 2, 4, quick ? 2 : 3); }});
  return out;
}

}  // namespace headflow
