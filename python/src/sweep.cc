#include "sweep.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "python_dataset.h"
#include "study/check_plan.h"
#include "study/compute_sweep.h"
#include "sweep/sweep_file.h"
#include "sweep/task_store.h"
#include "values.h"
#include "watch.h"

namespace headflow::python {
namespace {

/// name, keys, points (one value a key each), labels.
using AxisGiven =
    std::tuple<std::optional<std::string>, Names, std::vector<std::vector<Given>>, Names>;

SweepPlan plan_of(const Names& measures, const std::vector<AxisGiven>& axes) {
  SweepPlan plan;
  for (const std::string& name : measures) {
    plan.measures.push_back(from_name<Measure>("sweep.measure", name));
  }
  for (const auto& [name, keys, points, labels] : axes) {
    std::vector<std::vector<Value>> values;
    for (const std::vector<Given>& point : points) {
      std::vector<Value>& all = values.emplace_back();
      for (const Given& one : point) all.push_back(value_of(one));
    }
    plan.axes.push_back(make_axis(name, keys, std::move(values), labels));
  }
  return plan;
}

/// Tasks are kept in a folder, if it has a name.
nb::tuple computed(const SweepPlan& plan, const Config& base,
                   const std::optional<std::string>& folder, const nb::object& told) {
  std::optional<Dataset> out;
  const bool interrupted = run_watched(
      [&](const Context& context) {
        const auto store = folder ? std::make_unique<TaskStore>(*folder) : nullptr;
        out = compute_sweep(plan, base, context, store.get());
      },
      base.program.threads, told);
  return nb::make_tuple(out ? python_dataset(std::move(*out)) : nb::none(), interrupted);
}

/// `given`: keys that were given for all tasks.
nb::tuple sweep(const Config& base, const Names& measures, const std::vector<AxisGiven>& axes,
                const Names& given, const std::optional<std::string>& folder,
                const nb::object& told) {
  SweepPlan plan = plan_of(measures, axes);
  GivenFlags flags;
  for (const std::string& name : given) {
    const Key& key = key_named(name);
    plan.point_is_given = plan.point_is_given || key.section == "point";
    if (const auto value = key.get(base)) flags.emplace_back(&key, *value);
  }
  check_plan(plan, base, flags);
  return computed(plan, base, folder, told);
}

/// Of a configuration file, as the program reads it; `given` wins over it.
nb::tuple sweep_file(const std::string& path,
                     const std::vector<std::tuple<std::string, Given>>& given,
                     const std::optional<std::string>& folder, const nb::object& told) {
  GivenFlags flags;
  for (const auto& [name, value] : given) flags.emplace_back(&key_named(name), value_of(value));
  const SweepFile file = read_sweep_file(path, flags);
  return computed(file.plan, file.base, folder, told);
}

}  // namespace

void bind_sweep(nb::module_& module) {
  module.def("sweep", &sweep, nb::arg("base"), nb::arg("measures"), nb::arg("axes"),
             nb::arg("given"), nb::arg("folder").none(), nb::arg("told").none(),
             nb::sig("def sweep(base: Config, measures: list[str], axes: list[tuple[str | None, "
                     "list[str], list[list[object]], list[str]]], given: list[str], folder: str | "
                     "None, told: object | None) -> tuple[dict[str, object] | None, bool]"),
             "(result, interrupted): what is measured, along axes.");
  module.def(
      "sweep_file", &sweep_file, nb::arg("path"), nb::arg("given"), nb::arg("folder").none(),
      nb::arg("told").none(),
      nb::sig("def sweep_file(path: str, given: list[tuple[str, object]], folder: str | None, "
              "told: object | None) -> tuple[dict[str, object] | None, bool]"),
      "The same of a configuration file, as the program reads it.");
  module.def(
      "key_of_axis", [](const std::string& name) { return key_of_axis(name).full_name(); },
      nb::arg("name"), "The key that an axis names, problem.nu of problem.nu[2].");
}

}  // namespace headflow::python
