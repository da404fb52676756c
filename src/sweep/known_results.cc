#include "sweep/known_results.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "sweep/sweep_tasks.h"

namespace headflow {

namespace fs = std::filesystem;

KnownResults::KnownResults(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw FileError(folder, "is no folder of results; headflow reproduce makes one");
  }
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().extension() == kTasksExtension) {
      names.push_back(entry.path().string());
    }
  }
  std::ranges::sort(names);
  for (const std::string& name : names) stores_.emplace_back(name);
}

std::optional<Dataset> KnownResults::find(const Config& config, const Measures& measures) const {
  const TaskIdentity task = task_identity(config, measures);
  for (const TaskStore& store : stores_) {
    TaskStore::Loaded loaded = store.load(task);
    if (loaded.found != TaskStore::Found::whole) continue;
    ++found_;
    return Dataset{
        "headflow-measures", "headflow: measures", std::move(loaded.result.quantities), {}, {}};
  }
  return std::nullopt;
}

}  // namespace headflow
