// phases, prune, similarity and attention: one measure of a sweep's task, printed.

#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"
#include "study/measure_info.h"
#include "study/measures.h"

namespace headflow::cli {
namespace {

using Quantities = std::vector<Quantity>;

constexpr double kAtRest = 1e-3;  // gradient of a flow that has learnt what it will

const Quantity& find(const Quantities& all, const std::string& name) {
  for (const Quantity& q : all) {
    if (q.name == name) return q;
  }
  throw Error("no quantity " + name);  // a mistake of this file
}

nlohmann::ordered_json quantity_json(const Quantity& q, std::size_t dimension, std::size_t& at) {
  if (dimension == q.shape.size()) {
    const double x = q.values[at++];
    return std::isnan(x) ? nlohmann::ordered_json() : nlohmann::ordered_json(x);
  }
  auto out = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < q.shape[dimension]; ++i)
    out.push_back(quantity_json(q, dimension + 1, at));
  return out;
}

/// Measures, shows it as JSON or by `print`.
int analyse(Invocation& call, const std::vector<std::string>& measures,
            void (*print)(const Quantities&)) {
  Config& config = call.config;
  for (const Key& key : keys()) {
    const std::string name = key.full_name();
    if (!call.origins.flag(name)) continue;
    const std::string why = why_unused(name, measures, config.end.search != EndSearch::flow);
    if (!why.empty()) throw Error(fmt::format("{} changes nothing: {}", key.flag(), why));
  }
  config.flow.check();
  settle_start(call);
  const Problem problem(config.problem);
  config.end.check();
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  std::optional<Quantities> measured;
  {
    const Watched context(call, measures.back());
    measured = measure_task(config, measures, context);
  }
  if (!measured) throw Interrupted();
  const bool diverged = find(*measured, "diverged").values[0] == 1.0;
  if (call.json) {
    nlohmann::ordered_json out;
    for (const Quantity& q : *measured) {
      std::size_t at = 0;
      out[q.name] = quantity_json(q, 0, at);
    }
    out["seed"] = config.run.seed;
    fmt::print("{}\n", json_text(out));
  } else if (!diverged) {
    print(*measured);
  }
  if (!diverged) return kSuccess;
  fmt::print(stderr, "headflow: training diverged: take a smaller flow.step\n");
  return kDiverged;
}

void print_end(const Quantities& all) {
  fmt::print("training ends at tau = {:.4g} with gradient {:.2g}; loss {:.6f} +- {:.2g}\n",
             find(all, "end_time").values[0], find(all, "gradient_norm").values[0],
             find(all, "loss").values[0], find(all, "loss_error").values[0]);
}

void print_pruning(const Quantities& all) {
  print_end(all);
  const Quantity &loss = find(all, "pruned_loss"), &error = find(all, "pruned_loss_error"),
                 &head = find(all, "removed_head");
  fmt::print("heads left  removed  loss\n");
  for (std::size_t i = 0; i < loss.values.size(); ++i) {
    fmt::print("{:>10}  {:>7}  {:.6f} +- {:.2g}\n", loss.values.size() - i,
               head.values[i] == 0 ? "-" : fmt::format("{}", head.values[i]), loss.values[i],
               error.values[i]);
  }
}

void print_similarity(const Quantities& all) {
  print_end(all);
  const Quantity& cosine = find(all, "similarity");
  fmt::print("cosines of the angles between heads\n");
  for (std::size_t h = 0; h < cosine.shape[0]; ++h) {
    for (std::size_t k = 0; k < cosine.shape[1]; ++k) {
      fmt::print(" {:>8.5f}", cosine.values[h * cosine.shape[1] + k]);
    }
    fmt::print("\n");
  }
}

void print_attention(const Quantities& all) {
  print_end(all);
  const Quantity &maps = find(all, "attention"), &relevant = find(all, "relevant");
  const std::size_t H = maps.shape[1], L = maps.shape[2];
  for (std::size_t s = 0; s < maps.shape[0]; ++s) {
    fmt::print("sequence {}: token {} is relevant\n", s + 1, relevant.values[s]);
    for (std::size_t h = 0; h < H; ++h) {
      fmt::print("  head {}:", h + 1);
      for (std::size_t l = 0; l < L; ++l) {
        const bool here = l + 1 == static_cast<std::size_t>(relevant.values[s]);
        fmt::print(" {}{:.3f}{}", here ? '[' : ' ', maps.values[(s * H + h) * L + l],
                   here ? ']' : ' ');
      }
      fmt::print("\n");
    }
  }
}

void print_phases(const Quantities& all) {
  const Quantity &variance = find(all, "variance"), &tau = find(all, "tau_s"),
                 &crossings = find(all, "excursions"), &signs = find(all, "signs");
  const double mean = find(all, "tau_u").values[0];
  if (!std::isnan(mean)) fmt::print("tau_u  {:.5g}  (the heads' mean grows)\n", mean);
  const Quantity& vectors = find(all, "directions");
  fmt::print("direction  variance  tau_s      excursions  in the hidden directions\n");
  for (std::size_t f = 0; f < tau.values.size(); ++f) {
    std::string vector;
    for (std::size_t k = 0; k < tau.values.size(); ++k) {
      vector += fmt::format(" {:.3g}", vectors.values[f * tau.values.size() + k]);
    }
    fmt::print("{:>9}  {:>8.4g}  {:<9}  {:<10} {}\n", f + 1, variance.values[f],
               std::isnan(tau.values[f]) ? "-" : fmt::format("{:.5g}", tau.values[f]),
               crossings.values[f], vector);
  }
  fmt::print("signs of the heads along the directions at the end of the flow (.: not learnt)\n");
  for (std::size_t h = 0; h < signs.shape[0]; ++h) {
    fmt::print("  head {}: ", h + 1);
    for (std::size_t f = 0; f < signs.shape[1]; ++f) {
      const double x = signs.values[h * signs.shape[1] + f];
      fmt::print(" {}", std::isnan(tau.values[f]) ? '.' : x > 0 ? '+' : x < 0 ? '-' : '0');
    }
    fmt::print("\n");
  }
  const double gradient = find(all, "flow_gradient").values[0];
  if (gradient > kAtRest) {
    fmt::print("the flow still moves (gradient {:.2g}): a longer --time may change all this\n",
               gradient);
  }
}

const std::vector<std::string> kEndSections = {"problem", "point", "flow", "end", "run", "program"};

}  // namespace

const Command& prune_command() {
  static const Command command{
      "prune",
      "loss after removing trained heads, one by one",
      "Trains to the end (as fixed-point), then removes heads greedily, each time the one whose\n"
      "removal leaves the lowest loss. The output is rescaled by H / (heads left); b-softmax is\n"
      "normalised over the heads left.\n\n"
      "example:\n"
      "  headflow prune --prior gaussian --heads 4 --features 2 --nu 4 --tolerance 1e-4\n",
      kEndSections,
      true,
      nullptr,
      [](Invocation& call) {
        return analyse(call, {"end", "pruning"}, print_pruning);
      }};
  return command;
}

const Command& similarity_command() {
  static const Command command{
      "similarity",
      "cosines of the angles between trained heads",
      "Trains to the end (as fixed-point) and prints k_h . k_h' / (|k_h| |k_h'|).\n\n"
      "example:\n"
      "  headflow similarity --heads 2 --nu 4,1\n",
      kEndSections,
      true,
      nullptr,
      [](Invocation& call) {
        return analyse(call, {"end", "similarity"}, print_similarity);
      }};
  return command;
}

const Command& attention_command() {
  static const Command command{
      "attention",
      "attention of trained heads on fresh sequences",
      "Trains to the end (as fixed-point), draws five sequences and prints the attention of each\n"
      "head on each token; brackets mark the relevant one.\n\n"
      "example:\n"
      "  headflow attention --activation softmax-1 --prior gaussian --nu 9 --tokens 5\n",
      kEndSections,
      true,
      nullptr,
      [](Invocation& call) {
        return analyse(call, {"end", "attention"}, print_attention);
      }};
  return command;
}

const Command& phases_command() {
  static const Command command{
      "phases",
      "when each direction is learnt along the flow",
      "Follows the flow and prints, for each eigenvector of Cov theta (largest variance first):\n"
      "tau_s, when the spread of the heads along it first reaches half of its largest value; its\n"
      "excursions (heads that change sides); the sign of each head at the end. tau_u is when the\n"
      "heads' mean along E theta first reaches half of its largest value.\n\n"
      "example:\n"
      "  headflow phases --prior gaussian --heads 4 --nu 8,2 --integrator implicit --time 3000\n"
      "    --spacing log --tolerance 1e-4\n",
      {"problem", "point", "flow", "run", "program"},
      true,
      nullptr,
      [](Invocation& call) { return analyse(call, {"phases"}, print_phases); }};
  return command;
}

}  // namespace headflow::cli
