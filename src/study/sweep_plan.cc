#include "study/sweep_plan.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/index.h"
#include "study/keys.h"

namespace headflow {
namespace {

/// The numbers that a key holds now.
std::vector<double> list_of(const Config& config, const Key& key) {
  const auto value = key.get(config);
  if (!value) return {};
  if (const auto x = to_number(*value)) return {*x};
  const auto* matrix = std::get_if<Matrix>(&*value);
  if (!matrix || matrix->rows() != 1) {
    throw Error(fmt::format("{} = {} is no list: one of its numbers cannot be an axis",
                            key.full_name(), value_text(*value)));
  }
  return {matrix->data(), matrix->data() + matrix->size()};
}

}  // namespace

std::size_t meant_by_one(const Config& config, const Key& key) {
  std::size_t most = 1;  // the prior may be an axis, too
  for (const PriorInfo* prior : priors()) {
    for (const ParameterInfo& parameter : prior->parameters) {
      if (!parameter.meant_by_one || key.full_name() != fmt::format("problem.{}", parameter.name))
        continue;
      most = std::max(most, at(parameter.meant_by_one(config.problem.features)));
    }
  }
  if (most > 1) return most;
  for (const BlockInfo& block : config.problem.find_activation()->blocks()) {
    if (key.full_name() != "flow.init_" + block.name || block.axes.empty()) continue;
    return static_cast<std::size_t>(config.problem.heads);
  }
  return 1;
}

namespace {

/// Sets some numbers of a list (counted from 1); the others stay what they are.
void set_elements(Config& config, const Key& key, const std::map<std::size_t, double>& elements) {
  std::vector<double> before = list_of(config, key);
  std::size_t size = std::max(before.size(), elements.rbegin()->first);
  // Where one number stands for several, varying the first must not vary the others.
  const std::size_t several = meant_by_one(config, key);
  size = std::max(size, several);
  if (before.size() == 1 && several > 1) before.resize(size, before[0]);
  Matrix list(1, static_cast<Eigen::Index>(size));
  for (std::size_t i = 0; i < size; ++i) {
    const auto found = elements.find(i + 1);
    if (found == elements.end() && i >= before.size()) {
      throw Error(fmt::format("{0}[{1}] is an axis, but {0}[{2}] is neither an axis nor set",
                              key.full_name(), elements.rbegin()->first, i + 1));
    }
    list(0, static_cast<Eigen::Index>(i)) = found == elements.end() ? before[i] : found->second;
  }
  key.set(config, list);
}

}  // namespace

const std::vector<std::string>& swept_sections() {
  static const std::vector<std::string> sections = {"problem", "run", "point", "loss",
                                                    "flow",    "end", "sgd",   "compare"};
  return sections;
}

AxisTarget target_of(const std::string& name) {
  const std::size_t open = name.find('[');
  if (open == std::string::npos || name.size() < open + 3 || name.back() != ']') return {name, 0};
  const std::string digits = name.substr(open + 1, name.size() - open - 2);
  if (digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return {name, 0};
  }
  const auto element = static_cast<std::size_t>(std::stoi(digits));
  return element == 0 ? AxisTarget{name, 0} : AxisTarget{name.substr(0, open), element};
}

std::size_t SweepPlan::tasks() const {
  std::size_t out = 1;
  for (const SweepAxis& axis : axes) out *= axis.points.size();
  return out;
}

std::vector<std::size_t> SweepPlan::position(std::size_t task) const {
  std::vector<std::size_t> out(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    out[a] = task % axes[a].points.size();
    task /= axes[a].points.size();
  }
  return out;
}

Config SweepPlan::config_of(std::size_t task, const Config& base) const {
  Config config = base;
  const std::vector<std::size_t> where = position(task);
  std::map<std::string, std::map<std::size_t, double>> lists;  // by key and element
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (std::size_t k = 0; k < axes[a].keys.size(); ++k) {
      const AxisTarget target = target_of(axes[a].keys[k]);
      const Value& value = axes[a].points[where[a]][k];
      if (target.element == 0) {
        find_key(target.key)->set(config, value);
        continue;
      }
      const auto x = to_number(value);
      if (!x) {
        throw Error(fmt::format("axis {}: {} must be a number", axes[a].name, axes[a].keys[k]));
      }
      lists[target.key][target.element] = *x;
    }
  }
  for (const auto& [name, elements] : lists) set_elements(config, *find_key(name), elements);
  // As the flag --tau does, an axis of it wins over steps in the file.
  if (varies("sgd.tau")) config.sgd.steps = 0;
  return config;
}

bool SweepPlan::varies(std::string_view key) const {
  for (const SweepAxis& axis : axes) {
    for (const std::string& name : axis.keys) {
      if (target_of(name).key == key) return true;
    }
  }
  return false;
}

bool SweepPlan::sets_point() const {
  const auto at_point = [](const std::string& name) { return name.starts_with("point."); };
  return point_is_given || std::ranges::any_of(axes, [&](const SweepAxis& axis) {
           return std::ranges::any_of(axis.keys, at_point);
         });
}

std::vector<std::string> SweepPlan::replaced_keys() const {
  std::vector<std::string> out;
  for (const SweepAxis& axis : axes) {
    for (const std::string& name : axis.keys) {
      if (target_of(name).element == 0) out.push_back(name);
    }
  }
  if (varies("sgd.tau")) out.emplace_back("sgd.steps");
  return out;
}

std::string SweepPlan::describe(std::size_t task) const {
  const std::vector<std::size_t> where = position(task);
  std::string out;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    out += fmt::format("{}{} {}", a ? ", " : "", axes[a].name, axes[a].labels[where[a]]);
  }
  return out;
}

std::string SweepPlan::toml() const {
  const auto list = [](const auto& values) {
    std::string text;
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + value_text(Value(value));
    return "[" + text + "]";
  };
  std::string out = fmt::format("[sweep]\nmeasure = {}\n", value_text(names_of(measures)));
  for (const SweepAxis& axis : axes) {
    out += fmt::format("\n[[sweep.axis]]\nname = {}\nkeys = {}\nvalues = [", value_text(axis.name),
                       list(axis.keys));
    for (std::size_t i = 0; i < axis.points.size(); ++i) {
      if (i > 0) out += ", ";
      out += axis.keys.size() == 1 ? value_text(axis.points[i][0]) : list(axis.points[i]);
    }
    out += "]\n";
    if (axis.numbers.empty()) out += fmt::format("labels = {}\n", list(axis.labels));
  }
  return out;
}

}  // namespace headflow
