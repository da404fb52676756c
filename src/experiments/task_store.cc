#include "experiments/task_store.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/result_file.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

// A task as JSON: numbers are written so that the same bits are read; NaN is null.

nlohmann::json to_json(const TaskResult& result) {
  auto out = nlohmann::json::array();
  for (const Quantity& q : result.quantities) {
    out.push_back({{"name", q.name},
                   {"long_name", q.long_name},
                   {"dimensions", q.dimensions},
                   {"shape", q.shape},
                   {"values", q.values}});
  }
  return {{"seconds", result.seconds}, {"quantities", out}};
}

TaskResult from_json(const nlohmann::json& json) {
  TaskResult out;
  out.seconds = json.at("seconds");
  for (const auto& one : json.at("quantities")) {
    Quantity q{one.at("name"), one.at("long_name"), one.at("dimensions"), one.at("shape"), {}};
    for (const auto& x : one.at("values")) {
      q.values.push_back(x.is_null() ? std::nan("") : x.get<double>());
    }
    out.quantities.push_back(std::move(q));
  }
  return out;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TaskStore::TaskStore(const std::string& folder, const std::string& configuration)
    : folder_(folder) {
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

fs::path TaskStore::path_of(std::size_t task) const {
  return folder_ / fmt::format("{:06}.json", task);
}

bool TaskStore::load(std::size_t task, TaskResult& out) const {
  const fs::path path = path_of(task);
  if (!fs::exists(path)) return false;
  out = from_json(nlohmann::json::parse(read_text(path)));
  return true;
}

void TaskStore::save(std::size_t task, const TaskResult& result) const {
  write_atomically(path_of(task).string(), to_json(result).dump());
}

void TaskStore::remove() const {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace headflow
