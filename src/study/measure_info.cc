#include "study/measure_info.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/suggest.h"
#include "model/activation.h"
#include "sgd/limit.h"

namespace headflow {
namespace {

struct Info {
  Source source;
  std::vector<std::string> quantities, dimensions;
  std::vector<std::string> of_blocks = {};  ///< what stands after the name of a block
};

Info sgd_info() {
  Info out{Source::sgd,
           {"tau", "sgd_loss_t", "sgd_loss_t_error", "sgd_m_t", "sgd_q_t"},
           {"time", "attention_head", "other_head", "feature"}};
  for (const auto& [limit, name] : kNames<LimitKind>) {
    for (const char* one : {"loss_t", "loss_t_error", "m_t", "q_t"}) {
      out.quantities.push_back(limit == LimitKind::flow ? one : fmt::format("{}_{}", one, name));
    }
  }
  return out;
}

Info info_of(Measure measure) {
  switch (measure) {
    case Measure::end:
      return {Source::end,
              {"loss", "loss_error", "excess_risk", "excess_risk_error", "gradient_norm",
               "converged", "index", "end_time", "m", "R_norm"},
              {"attention_head", "feature"},
              {""}};
    case Measure::bayes: return {Source::model, {"bayes", "bayes_error"}, {}};
    case Measure::flow:
      return {Source::flow,
              {"tau", "loss_t", "loss_t_error", "m_t", "R_norm_t"},
              {"time", "attention_head", "feature"},
              {"_t"}};
    case Measure::sgd: return sgd_info();
    case Measure::phases:
      return {Source::flow,
              {"variance", "directions", "flow_gradient", "tau_u", "tau_s", "excursions", "signs"},
              {"direction", "feature", "attention_head"}};
    case Measure::pruning:
      return {Source::end, {"pruned_loss", "pruned_loss_error", "removed_head"}, {"removed"}};
    case Measure::similarity:
      return {Source::end, {"similarity"}, {"attention_head", "other_head"}};
    case Measure::attention:
      return {Source::end, {"attention", "relevant"}, {"sequence", "attention_head", "token"}};
  }
  throw Error("a measure without a line in measure_info.cc");
}

/// Names of quantities, with the blocks of every activation there is: it may be an axis.
std::vector<std::string> quantities_of(const Info& info) {
  std::vector<std::string> out = info.quantities;
  std::set<std::string> blocks;
  for (const auto& activation : activations()) {
    for (const BlockInfo& block : activation->blocks()) blocks.insert(block.name);
  }
  for (const std::string& suffix : info.of_blocks) {
    for (const std::string& block : blocks) out.push_back(block + suffix);
  }
  return out;
}

std::vector<std::string> dimensions_of(const Info& info) {
  std::vector<std::string> out = info.dimensions;
  if (info.of_blocks.empty()) return out;
  for (const auto& activation : activations()) {
    for (const BlockInfo& block : activation->blocks()) {
      for (const std::string& one : block.dimensions()) out.push_back(one);
    }
  }
  return out;
}

}  // namespace

Source source_of(Measure measure) { return info_of(measure).source; }

bool trains(Measure measure) {
  const Source source = source_of(measure);
  return source == Source::flow || source == Source::end;
}

bool survives_divergence(Measure measure) {
  return source_of(measure) != Source::end && measure != Measure::phases;
}

std::string why_unused(const std::string& key, const Measures& measures, bool newton) {
  const auto any = [&](Source source) {
    return std::ranges::any_of(measures, [&](Measure m) { return source_of(m) == source; });
  };
  const std::string section = key.substr(0, key.find('.'));
  if ((section == "sgd" || section == "compare") && !any(Source::sgd))
    return "none of the measures runs SGD";
  if (section == "end" && !any(Source::end)) {
    return "none of the measures goes to the end of training";
  }
  if (section == "loss" && std::ranges::count(measures, Measure::end) == 0) {
    return "the excess risk comes with the measure \"end\"";
  }
  if (section != "flow") return "";
  if (std::ranges::none_of(measures, trains)) return "none of the measures starts a flow";
  if (any(Source::flow) || !newton || key.starts_with("flow.init") || key == "flow.rtol" ||
      key == "flow.atol") {
    return "";
  }
  return "end.search = \"newton\" follows the flow in its own way (\"flow\" as [flow] says)";
}

void check_measures(const Measures& measures) {
  std::map<std::string, Measure> owner;
  for (const Measure measure : measures) {
    for (const std::string& quantity : quantities_of(info_of(measure))) {
      const auto [at, fresh] = owner.emplace(quantity, measure);
      if (fresh) continue;
      if (at->second == measure) {
        throw Error(fmt::format("the measure {} is named twice", in_quotes(measure)));
      }
      throw Error(fmt::format("the measures {} and {} both give {}: make two sweeps of them",
                              in_quotes(at->second), in_quotes(measure), quantity));
    }
  }
}

std::vector<std::string> names_in_result(const Measures& measures) {
  std::set<std::string> out = {"diverged"};
  for (const Measure measure : measures) {
    const Info info = info_of(measure);
    for (const std::string& one : dimensions_of(info)) out.insert(one);
    for (const std::string& one : quantities_of(info)) out.insert(one);
  }
  return {out.begin(), out.end()};
}

}  // namespace headflow
