#include "study/sweep_result.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "study/overlaps.h"

namespace headflow {
namespace {

/// A quantity of all tasks, padded with NaN where a task's is smaller: dimensions are its own.
struct Assembled {
  Quantity q;
  std::vector<std::string> meanings;  // in general one
  bool has_errors = false;
};

/// Numbers of a task, to their place among those of all.
void copy_block(const std::vector<double>& from, const Dimensions& own, std::vector<double>& to,
                const Dimensions& common, std::size_t task) {
  const std::size_t block = size_of(common);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t rest = i, place = 0, stride = 1;
    for (std::size_t d = own.size(); d-- > 0;) {
      place += rest % own[d].size * stride;
      rest /= own[d].size;
      stride *= common[d].size;
    }
    to[task * block + place] = from[i];
  }
}

template <class T>
void add_once(std::vector<T>& all, const T& one) {
  if (std::ranges::count(all, one) == 0) all.push_back(one);
}

bool alike(const Quantity& a, const Quantity& b) {
  const auto same = [](const Dimension& x, const Dimension& y) { return x.name == y.name; };
  return a.whole == b.whole && std::ranges::equal(a.dimensions, b.dimensions, same);
}

std::vector<Assembled> assemble(std::size_t tasks, const TaskLoader& load) {
  std::vector<Assembled> out;
  std::map<std::string, std::size_t> largest;  // of each dimension, over everything
  std::map<std::string, std::size_t> where;
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const Quantity& q : load(t).quantities) {
      for (const Dimension& d : q.dimensions) {
        std::size_t& n = largest[d.name];
        n = std::max(n, d.size);
      }
      const auto [at, fresh] = where.emplace(q.name, out.size());
      if (fresh) {
        out.push_back({q, {}, false});
        out.back().q.error_kinds.clear();
      }
      Assembled& array = out[at->second];
      if (!alike(array.q, q)) {
        throw Error(fmt::format("tasks give {} in different shapes", q.name));
      }
      add_once(array.meanings, q.meaning);
      for (const ErrorKind kind : q.error_kinds) add_once(array.q.error_kinds, kind);
      array.has_errors = array.has_errors || !q.errors.empty();
    }
  }
  for (Assembled& array : out) {
    Quantity& q = array.q;
    for (Dimension& d : q.dimensions) d.size = largest[d.name];
    q.meaning = fmt::format("{}", fmt::join(array.meanings, "; or: "));
    q.values.assign(tasks * q.size(), std::nan(""));
    q.errors.clear();
    if (array.has_errors) q.errors = q.values;
  }
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const Quantity& q : load(t).quantities) {
      Quantity& all = out[where.at(q.name)].q;
      copy_block(q.values, q.dimensions, all.values, all.dimensions, t);
      copy_block(q.errors, q.dimensions, all.errors, all.dimensions, t);
    }
  }
  return out;
}

/// The output times as a coordinate, if they are the same for all tasks.
void add_common_times(Dataset& out, const std::vector<Assembled>& arrays) {
  for (const auto& [q, meanings, has_errors] : arrays) {
    if (q.name != "tau" || q.dimensions.size() != 1 || q.dimensions[0].name != "time") continue;
    const std::size_t n = q.size();
    for (std::size_t i = 0; i < q.values.size(); ++i) {
      if (!(q.values[i] == q.values[i % n])) return;
    }
    add_time(out, {q.values.begin(), q.values.begin() + static_cast<std::ptrdiff_t>(n)});
  }
}

void add_axis(Dataset& out, const SweepAxis& axis) {
  const Dimensions own = {{axis.name, axis.points.size()}};
  const std::string keys = fmt::format("{}", fmt::join(axis.keys, ", "));
  Quantity& q = !axis.integers.empty() ? out.add_integers(axis.name, keys, own, axis.integers)
                : axis.numbers.empty() ? out.add_texts(axis.name, keys, own, axis.labels)
                                       : out.add(axis.name, keys, own, axis.numbers);
  q.units.clear();
}

}  // namespace

Dataset sweep_dataset(const SweepPlan& plan, const TaskLoader& load, const Provenance& provenance) {
  Dataset out{"headflow-sweep", "sweep", {}, {}, provenance};
  Dimensions axes;
  for (const SweepAxis& axis : plan.axes) {
    axes.push_back({axis.name, axis.points.size()});
    add_axis(out, axis);
  }
  std::vector<Assembled> arrays = assemble(plan.tasks(), load);
  add_common_times(out, arrays);
  for (Assembled& array : arrays) {
    array.q.dimensions.insert(array.q.dimensions.begin(), axes.begin(), axes.end());
    out.quantities.push_back(std::move(array.q));
  }
  return out;
}

}  // namespace headflow
