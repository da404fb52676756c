#include "sweep/known_results.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
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

KnownTasks::Loaded KnownResults::load(const TaskIdentity& task) const {
  for (const TaskStore& store : stores_) {
    Loaded loaded = store.load(task);
    if (loaded.found != Found::whole) continue;
    ++found_;
    return loaded;
  }
  return {};
}

}  // namespace headflow
