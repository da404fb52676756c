#include "experiments/sweep.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "core/parallel.h"
#include "experiments/measures.h"
#include "io/atomic_file.h"
#include "io/result_file.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

void prepare(const SweepOptions& options, Session& session) {
  session.keys.read_file(options.file, "sweep");
  if (options.override_keys) options.override_keys(session);
  session.engine.threads = 1;
}

/// What the numbers depend on.
std::string configuration_of(const SweepPlan& plan, const SweepOptions& options) {
  Session session;
  prepare(options, session);
  return session.keys.toml({"problem", "run", "point", "flow"}) + "\n" + plan.toml();
}

/// A wrong value is found before hours are spent on the others.
void check_tasks(const SweepPlan& plan, const SweepOptions& options) {
  for (std::size_t i = 0; i < plan.tasks(); ++i) {
    Session session;
    prepare(options, session);
    try {
      plan.apply(i, session);
      static_cast<void>(Problem(session.problem));
      session.flow.check();
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}: {}", options.file, plan.describe(i), e.what()));
    }
  }
}

// A task as JSON: numbers are written so that the same bits are read; NaN is null.

nlohmann::json to_json(const std::vector<Quantity>& quantities) {
  auto out = nlohmann::json::array();
  for (const Quantity& q : quantities) {
    out.push_back({{"name", q.name},
                   {"long_name", q.long_name},
                   {"dimensions", q.dimensions},
                   {"shape", q.shape},
                   {"values", q.values}});
  }
  return out;
}

std::vector<Quantity> from_json(const nlohmann::json& json) {
  std::vector<Quantity> out;
  for (const auto& one : json) {
    Quantity q{one.at("name"), one.at("long_name"), one.at("dimensions"), one.at("shape"), {}};
    for (const auto& x : one.at("values")) {
      q.values.push_back(x.is_null() ? std::nan("") : x.get<double>());
    }
    out.push_back(std::move(q));
  }
  return out;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

class Store {
 public:
  Store(const std::string& output, const std::string& configuration)
      : folder_(output + ".tasks"), output_(output) {
    const std::string key = program_version() + " " + program_commit() + "\n" + configuration;
    const fs::path name = folder_ / "configuration";
    if (fs::exists(name)) {
      if (read_text(name) == key) return;
      throw Error(
          fmt::format("{}: holds tasks of another configuration or version of the program; remove "
                      "that folder, or choose another --output",
                      folder_.string()));
    }
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) throw FileError(folder_.string(), "cannot be made: " + error.message());
    write_atomically(name.string(), key);
  }

  bool load(std::size_t task, std::vector<Quantity>& out) const {
    const fs::path path = path_of(task);
    if (!fs::exists(path)) return false;
    out = from_json(nlohmann::json::parse(read_text(path)));
    return true;
  }
  void save(std::size_t task, const std::vector<Quantity>& quantities) const {
    write_atomically(path_of(task).string(), to_json(quantities).dump());
  }
  void remove() const {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 private:
  fs::path path_of(std::size_t task) const { return folder_ / fmt::format("{:06}.json", task); }
  fs::path folder_;
  std::string output_;
};

/// Arrays of all tasks as one, padded with NaN where a task's is smaller.
struct Assembled {
  std::string long_name;
  std::vector<std::string> dimensions;
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

void copy_block(const Quantity& from, Assembled& to, std::size_t task) {
  std::size_t block = 1;
  for (const std::size_t n : to.shape) block *= n;
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    std::size_t rest = i, place = 0, stride = 1;
    for (std::size_t d = from.shape.size(); d-- > 0;) {
      place += rest % from.shape[d] * stride;
      rest /= from.shape[d];
      stride *= to.shape[d];
    }
    to.values[task * block + place] = from.values[i];
  }
}

std::vector<std::pair<std::string, Assembled>> assemble(
    const std::vector<std::vector<Quantity>>& tasks) {
  std::vector<std::pair<std::string, Assembled>> out;
  std::map<std::string, std::size_t> largest;  // of each dimension, over everything
  std::map<std::string, std::size_t> where;
  for (const auto& task : tasks) {
    for (const Quantity& q : task) {
      for (std::size_t d = 0; d < q.shape.size(); ++d) {
        std::size_t& n = largest[q.dimensions[d]];
        n = std::max(n, q.shape[d]);
      }
      if (where.emplace(q.name, out.size()).second) {
        out.push_back({q.name, {q.long_name, q.dimensions, {}, {}}});
      }
    }
  }
  for (auto& [name, array] : out) {
    std::size_t block = 1;
    for (const std::string& dimension : array.dimensions) {
      array.shape.push_back(largest[dimension]);
      block *= largest[dimension];
    }
    array.values.assign(tasks.size() * block, std::nan(""));
  }
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const Quantity& q : tasks[t]) copy_block(q, out[where[q.name]].second, t);
  }
  return out;
}

void write_result(const SweepPlan& plan, const SweepOptions& options,
                  const std::string& configuration,
                  const std::vector<std::vector<Quantity>>& tasks) {
  NetcdfWriter file;
  std::vector<std::string> axes;
  for (const SweepAxis& axis : plan.axes) {
    axes.push_back(axis.name);
    file.dimension(axis.name, axis.points.size());
    std::string keys;
    for (const std::string& key : axis.keys) keys += (keys.empty() ? "" : ", ") + key;
    if (axis.numbers.empty()) {
      file.variable(axis.name, {axis.name}, axis.labels, {{"long_name", keys}});
    } else {
      file.variable(axis.name, {axis.name}, axis.numbers, {{"long_name", keys}});
    }
  }
  const auto arrays = assemble(tasks);
  std::map<std::string, std::size_t> own;
  for (const auto& [name, array] : arrays) {
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      own.emplace(array.dimensions[d], array.shape[d]);
    }
  }
  for (const auto& [name, size] : own) file.dimension(name, size);
  for (const auto& [name, size] : own) {
    if (name == "time") continue;
    std::vector<int> numbers(size);
    std::iota(numbers.begin(), numbers.end(), name == "removed" ? 0 : 1);
    file.variable(name, {name}, numbers, {{"long_name", name}});
  }
  for (const auto& [name, array] : arrays) {
    std::vector<std::string> dimensions = axes;
    dimensions.insert(dimensions.end(), array.dimensions.begin(), array.dimensions.end());
    file.variable(name, dimensions, array.values, described(array.long_name));
  }
  Session session;
  prepare(options, session);
  write_provenance(file, "sweep", "headflow-sweep",
                   {configuration, options.command_line, session.engine.seed});
  file.write(options.output);
}

}  // namespace

SweepOutcome run_sweep(const SweepPlan& plan, const SweepOptions& options,
                       const SweepObserver& observer) {
  SweepOutcome out;
  out.tasks = plan.tasks();
  check_tasks(plan, options);
  const std::string configuration = configuration_of(plan, options);
  if (is_result_of(options.output, configuration)) {
    out.done = out.kept = out.tasks;
    out.up_to_date = true;
    return out;
  }
  if (fs::exists(options.output)) {
    throw Error(
        fmt::format("{}: is the result of another configuration or version of the program; "
                    "remove it, or choose another --output",
                    options.output));
  }
  check_writable(options.output);
  const Store store(options.output, configuration);
  std::vector<std::vector<Quantity>> results(out.tasks);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < out.tasks; ++i) {
    if (store.load(i, results[i])) {
      ++out.kept;
    } else {
      open.push_back(i);
    }
  }
  std::atomic<std::size_t> next = 0, done = out.kept;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::exception_ptr failure;
  const Workers workers(options.threads);
  workers.for_each_block(static_cast<std::size_t>(workers.count()), [&](std::size_t, int) {
    while (!stop) {
      const std::size_t at = next++;
      if (at >= open.size()) return;
      const std::size_t i = open[at];
      try {
        Session session;
        prepare(options, session);
        plan.apply(i, session);
        auto measured = measure_task(session, plan.measures, [&] { return !stop; });
        if (!measured) return;
        store.save(i, *measured);
        results[i] = std::move(*measured);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        stop = true;
        return;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      if (!observer(++done, plan.describe(i))) stop = true;
    }
  });
  out.done = done;
  if (failure) std::rethrow_exception(failure);
  if (out.done == out.tasks) {
    write_result(plan, options, configuration, results);
    store.remove();
  }
  return out;
}

}  // namespace headflow
