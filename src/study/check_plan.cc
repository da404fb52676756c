#include "study/check_plan.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

bool sets(const SweepAxis& axis, const std::string& key) {
  return std::ranges::count(axis.keys, key) > 0;
}

/// Of an axis that nobody made by make_axis.
void check_sizes(const SweepAxis& axis) {
  const auto whole = [&](const std::vector<Value>& point) {
    return point.size() == axis.keys.size();
  };
  if (axis.keys.empty() || axis.points.empty() || axis.labels.size() != axis.points.size() ||
      !std::ranges::all_of(axis.points, whole)) {
    throw Error(fmt::format("the axis {} is not whole: make_axis makes one", in_quotes(axis.name)));
  }
  for (const std::string& key : axis.keys) static_cast<void>(key_of_axis(key));
}

[[noreturn]] void refuse_both(const Key& key, const Value& value, const SweepAxis& axis,
                              const std::string& name) {
  throw Error(fmt::format("{} = {} and the axis {} both set {}: leave one of them out",
                          key.full_name(), value_text(value), in_quotes(axis.name), name));
}

/// A key that no task would see is a mistake.
void check_given_key(const SweepPlan& plan, const Config& base, const Key& key,
                     const Value& value) {
  for (const SweepAxis& axis : plan.axes) {
    if (sets(axis, key.full_name())) refuse_both(key, value, axis, key.full_name());
  }
  // nu = 3, 4 beside an axis of nu[2]: the 4 would be lost.
  const auto* matrix = std::get_if<Matrix>(&value);
  const std::size_t numbers = matrix ? static_cast<std::size_t>(matrix->size()) : 1;
  for (const SweepAxis& axis : plan.axes) {
    for (const std::string& name : axis.keys) {
      const AxisTarget target = target_of(name);
      if (target.key != key.full_name() || numbers == 1 || target.element > numbers) continue;
      refuse_both(key, value, axis, name);
    }
  }
  // One number for several, all of which are axes.
  if (numbers != 1) return;
  std::string all;
  const std::size_t several = meant_by_one(base, key);
  for (std::size_t i = 1; several > 1 && i <= several; ++i) {
    const std::string element = fmt::format("{}[{}]", key.full_name(), i);
    const auto varies = [&](const SweepAxis& axis) { return sets(axis, element); };
    if (std::ranges::none_of(plan.axes, varies)) return;
    all += (i > 1 ? " and " : "") + element;
  }
  if (all.empty()) return;
  throw Error(fmt::format("{} = {} and the axes of {} set the same: leave one of them out",
                          key.full_name(), value_text(value), all));
}

}  // namespace

void check_axes(const SweepPlan& plan) {
  if (plan.measures.empty()) {
    throw Error(fmt::format("measure = [...] is missing; one or more of {}",
                            fmt::join(names_of<Measure>(), ", ")));
  }
  check_measures(plan.measures);
  std::map<std::string, std::string> owner;  // of a key
  std::size_t tasks = 1;
  for (std::size_t a = 0; a < plan.axes.size(); ++a) {
    const SweepAxis& axis = plan.axes[a];
    check_sizes(axis);
    check_axis_name(axis.name, plan.measures);
    for (std::size_t b = 0; b < a; ++b) {
      if (axis.name == plan.axes[b].name) {
        throw Error(fmt::format("two axes are called {}", axis.name));
      }
    }
    for (const std::string& key : axis.keys) {
      const auto [at, fresh] = owner.emplace(key, axis.name);
      if (fresh) continue;
      throw Error(fmt::format("the axes {} and {} both set {}", at->second, axis.name, key));
    }
    if (axis.points.size() > kMostTasks / tasks) {
      throw Error(
          fmt::format("the axes make more than {} tasks, the most a sweep may have", kMostTasks));
    }
    tasks *= axis.points.size();
  }
  if (plan.varies("sgd.tau") && plan.varies("sgd.steps")) {
    throw Error("sgd.tau and sgd.steps are both axes, and both set the length of a run");
  }
}

void check_given(const SweepPlan& plan, const Config& base, const GivenFlags& given) {
  for (const auto& [key, value] : given) check_given_key(plan, base, *key, value);
}

void check_use(const SweepPlan& plan, const Config& base, const GivenFlags& given) {
  const bool newton = base.end.search != EndSearch::flow && !plan.varies("end.search");
  const auto check = [&](const std::string& key, const std::string& what) {
    const std::string why = why_unused(key, plan.measures, newton);
    if (!why.empty()) throw Error(fmt::format("{} changes nothing: {}", what, why));
  };
  for (const SweepAxis& axis : plan.axes) {
    for (const std::string& name : axis.keys) {
      check(target_of(name).key, fmt::format("the axis of {}", name));
    }
  }
  for (const auto& [key, value] : given) {
    check(key->full_name(), key->full_name() + " = " + value_text(value));
  }
}

void check_plan(const SweepPlan& plan, const Config& base, const GivenFlags& given) {
  check_axes(plan);
  check_given(plan, base, given);
  check_use(plan, base, given);
}

}  // namespace headflow
