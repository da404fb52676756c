#include "study/measure_info.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "core/error.h"
#include "core/suggest.h"
#include "sgd/limit.h"

namespace headflow {
namespace {

struct Info {
  const char* name;
  bool trains;
  std::vector<const char*> quantities, dimensions;
};

const std::vector<Info>& infos() {
  static const std::vector<Info> all = {
      {"end",
       true,
       {"loss", "loss_error", "gradient_norm", "converged", "index", "end_time", "m", "b", "v",
        "R_norm"},
       {"attention_head", "feature"}},
      {"bayes", false, {"bayes", "bayes_error"}, {}},
      {"flow",
       true,
       {"tau", "loss_t", "loss_t_error", "m_t", "b_t", "v_t", "R_norm_t"},
       {"time", "attention_head", "feature"}},
      {"sgd",
       false,
       {"tau", "sgd_loss_t", "sgd_loss_t_error", "sgd_m_t", "sgd_q_t"},  // and those of the limits
       {"time", "attention_head", "other_head", "feature"}},
      {"phases",
       true,
       {"variance", "directions", "flow_gradient", "tau_u", "tau_s", "excursions", "signs"},
       {"direction", "feature", "attention_head"}},
      {"pruning", true, {"pruned_loss", "pruned_loss_error", "removed_head"}, {"removed"}},
      {"similarity", true, {"similarity"}, {"attention_head", "other_head"}},
      {"attention", true, {"attention", "relevant"}, {"sequence", "attention_head", "token"}}};
  return all;
}

const Info* find(const std::string& name) {
  for (const Info& one : infos()) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

std::vector<std::string> quantities_of(const Info& info) {
  std::vector<std::string> out(info.quantities.begin(), info.quantities.end());
  if (std::string(info.name) != "sgd") return out;
  for (const auto& [limit, limit_name] : kNames<LimitKind>) {
    for (const char* one : {"loss_t", "loss_t_error", "m_t", "q_t"}) {
      out.push_back(limit == LimitKind::flow ? one : fmt::format("{}_{}", one, limit_name));
    }
  }
  return out;
}

}  // namespace

bool is_measure(const std::string& name) { return find(name) != nullptr; }

bool trains(const std::string& measure) {
  const Info* info = find(measure);
  return info && info->trains;
}

std::string why_unused(const std::string& key, const std::vector<std::string>& measures,
                       bool newton) {
  const auto any = [&](std::initializer_list<const char*> of) {
    for (const char* one : of) {
      if (std::ranges::count(measures, one) > 0) return true;
    }
    return false;
  };
  const std::string section = key.substr(0, key.find('.'));
  const bool ends = any({"end", "pruning", "similarity", "attention"});
  if ((section == "sgd" || section == "compare") && !any({"sgd"}))
    return "none of the measures runs SGD";
  if (section == "end" && !ends) return "none of the measures goes to the end of training";
  if (section != "flow") return "";
  if (std::ranges::none_of(measures, trains)) return "none of the measures starts a flow";
  if (any({"flow", "phases"}) || !newton || key.starts_with("flow.init") || key == "flow.rtol" ||
      key == "flow.atol") {
    return "";
  }
  return "end.search = \"newton\" follows the flow in its own way (\"flow\" as [flow] says)";
}

std::string measure_names() {
  std::string out;
  for (const Info& one : infos()) out += (out.empty() ? "" : ", ") + std::string(one.name);
  return out;
}

void check_measures(const std::vector<std::string>& measures) {
  std::map<std::string, std::string> owner;
  for (const std::string& measure : measures) {
    const Info* info = find(measure);
    if (!info) {
      throw Error(
          fmt::format("there is no measure {}; there are {}", in_quotes(measure), measure_names()));
    }
    for (const std::string& quantity : quantities_of(*info)) {
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

std::vector<std::string> names_in_result(const std::vector<std::string>& measures) {
  std::set<std::string> out = {"diverged"};
  for (const std::string& measure : measures) {
    const Info* info = find(measure);
    if (!info) continue;
    out.merge(std::set<std::string>(info->dimensions.begin(), info->dimensions.end()));
    for (const std::string& one : quantities_of(*info)) out.insert(one);
  }
  return {out.begin(), out.end()};
}

}  // namespace headflow
