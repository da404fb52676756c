// What section IV says in words of more heads than are needed: the Bayes risk as a plateau, and
// pruning.

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "theory/bayes.h"
#include "verify/claim.h"
#include "verify/figure_tasks.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

constexpr double kSameEnd = 1e-3;  // losses of one minimum, or of two that are as good

/// The end of one flow from the paper's initial law.
Trajectory trained(const Problem& problem, double time, std::uint64_t seed,
                   const Context& context) {
  FlowOptions flow;
  flow.integrator = Scheme::implicit;
  flow.time = time;
  flow.rtol = 1e-5;
  flow.atol = 1e-7;
  flow.outputs = 1;
  return flow_from(problem, initial_point(problem, 0.01, seed), flow, on_one_core(1e-4), context);
}

// A discrete prior with as many points as features.
std::vector<Row> plateau(int F, double nu, int heads, double eta, double time,
                         const Context& context) {
  const ProblemOptions options = setting("b-softmax", "flipping", 5, heads, F, {nu}, eta);
  const Problem problem(options);
  const BayesRisk risk = bayes_risk(problem, {.tolerance = 1e-9}, context);
  const Trajectory run = trained(problem, time, 1, context);
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

struct Pruned {
  double loss = 0, rise = 0, kink = 0;
  double rise_error = 0, kink_error = 0;  // those of the losses
};

/// A network at the end of its training: how the loss rises with H - F heads removed, as a share of
/// it, and by how much more the next head costs than twice the mean of those before.
Pruned pruned(const ProblemOptions& options, std::uint64_t seed, const KnownTasks* known,
              const Context& context) {
  const Dataset found =
      known_or_measured(known, pruning_task(options, seed), pruning_measures(), context);
  if (found.number("index") != 0) {
    throw Error(fmt::format("pruning: {}, seed {}: training does not end in a minimum",
                            text(options), seed));
  }
  const Quantity& steps = found["pruned_loss"];
  const std::vector<double>&loss = steps.values, &error = steps.errors;
  const auto prunable = static_cast<std::size_t>(options.heads - options.features);
  const double rise = loss[prunable] - loss[0], before = error[0] + error[prunable];
  return {loss[0], rise / loss[0],
          loss[prunable + 1] - loss[prunable] - 2 * rise / static_cast<double>(prunable),
          before / loss[0], before + error[prunable + 1]};
}

// H - F heads can be pruned at little cost; the next one costs more. Of networks trained to their
// end: some starts of softmax-1 end in other minima, which are left out.
std::vector<Row> pruning(const char* activation, const char* prior, int H, int F, double nu,
                         int starts, const KnownTasks* known, const Context& context) {
  const ProblemOptions options = setting(activation, prior, 5, H, F, {nu});
  std::vector<Pruned> all;
  double best = HUGE_VAL;
  for (int i = 0; i < starts; ++i) {
    all.push_back(pruned(options, static_cast<std::uint64_t>(i) + 1, known, context));
    best = std::min(best, all.back().loss);
  }
  std::vector<double> rises;
  Pruned least{.kink = HUGE_VAL};
  double error = 0;
  for (const Pruned& one : all) {
    if (one.loss > best + kSameEnd) continue;
    rises.push_back(one.rise);
    error = std::max(error, one.rise_error);
    if (one.kink < least.kink) least = one;
  }
  const Measured rise = mean_of(rises);
  Row row{"Claim pruning", "H - F heads can be pruned at little cost: relative rise of the loss",
          fmt::format("{}; mean of the {} of {} starts that end lowest", text(options),
                      rises.size(), starts)};
  row.predicted = {0.15, Relation::at_most};
  row.measured = rise.value;
  row.error = std::hypot(rise.error, error);
  row.error_kind = ErrorKind::starts;
  row.smallest_wrong = -0.01;  // pruning does not help, either
  // Spare heads of softmax-1 are not idle at the end of training.
  if (std::string(activation) == "softmax-1") {
    row.expected_instead = Verdict::fails;
    row.smallest_wrong = row.predicted.value;
  }
  std::vector<Row> rows = {row};
  row.expected_instead.reset();
  row.statement = "and not one more: its cost minus twice the mean cost of those before";
  row.setting = fmt::format("{}; the least of the {} of {} starts that end lowest", text(options),
                            rises.size(), starts);
  row.predicted = {0, Relation::at_least};
  row.measured = least.kink;
  row.error = least.kink_error;
  row.error_kind = ErrorKind::refinement;
  row.smallest_wrong = 0.8;  // ignorance
  rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<Claim> spare_heads_claims(Effort effort,
                                      const std::shared_ptr<const KnownTasks>& known) {
  const bool quick = effort == Effort::quick;
  std::vector<Claim> out;
  for (const int heads : {1, 2, 3, 4}) {
    out.push_back({"Claim plateau", fmt::format("F = 2, H = {}", heads), 1.0 * heads,
                   [=](const Context& context) {
                     return plateau(2, 4, heads, 1, quick ? 500 : 1000, context);
                   }});
  }
  for (const int heads : {2, 3, 4}) {
    out.push_back({"Claim plateau", fmt::format("F = 3, H = {}", heads),
                   heads == 4 ? (quick ? 10.0 : 40.0) : 4.0, [=](const Context& context) {
                     return plateau(3, 10, heads, heads == 4 ? 0.1 : 1, quick ? 500 : 1000,
                                    context);
                   }});
  }
  for (const char* prior : {"flipping", "gaussian"}) {
    for (const std::string activation : {"softmax", "softmax-1"}) {
      // Six heads of softmax on three Gaussian features do not know where to stop.
      if (quick && activation == "softmax" && prior == std::string("gaussian")) continue;
      out.push_back(
          {"Claim pruning", fmt::format("{}, {}", activation, prior),
           quick                       ? 3.0
           : activation == "softmax-1" ? 30.0
                                       : 15.0,
           [=](const Context& context) {
             return quick ? pruning(activation.c_str(), prior, 6, 3, 10, 3, known.get(), context)
                          : pruning(activation.c_str(), prior, 8, 4, 10, 5, known.get(), context);
           }});
    }
  }
  out.push_back(
      {"Claim pruning", "b-softmax, flipping", quick ? 8.0 : 15.0, [=](const Context& context) {
         return pruning("b-softmax", "flipping", 4, 2, 4, quick ? 2 : 3, known.get(), context);
       }});
  return out;
}

}  // namespace headflow
