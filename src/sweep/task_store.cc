#include "sweep/task_store.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "io/atomic_file.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

// A file has two lines: what it is and the checksum of the rest; and the task as JSON. Numbers are
// written so that the same bits are read; those that JSON does not have are texts.

constexpr const char* kExtension = ".task";
constexpr const char* kHeader = "headflow-task 3 ";

nlohmann::json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double number(const nlohmann::json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "nan") return std::nan("");
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  throw Error(fmt::format("{} is no number", text));
}

nlohmann::json numbers(const std::vector<double>& all) {
  auto out = nlohmann::json::array();
  for (const double x : all) out.push_back(number(x));
  return out;
}

std::vector<double> numbers(const nlohmann::json& all) {
  if (!all.is_array()) throw Error("its numbers are no list");
  std::vector<double> out;
  for (const auto& x : all) out.push_back(number(x));
  return out;
}

nlohmann::json to_json(const TaskIdentity& task, const TaskResult& result) {
  auto quantities = nlohmann::json::array();
  for (const Quantity& q : result.quantities) {
    auto dimensions = nlohmann::json::array(), kinds = nlohmann::json::array();
    for (const Dimension& d : q.dimensions) dimensions.push_back({d.name, d.size});
    for (const ErrorKind kind : q.error_kinds) kinds.push_back(to_string(kind));
    quantities.push_back({{"name", q.name},
                          {"meaning", q.meaning},
                          {"dimensions", std::move(dimensions)},
                          {"whole", q.whole},
                          {"role", q.role},
                          {"values", numbers(q.values)},
                          {"errors", numbers(q.errors)},
                          {"error_kinds", std::move(kinds)},
                          {"error_name", q.error_name},
                          {"texts", q.texts},
                          {"integers", q.integers},
                          {"units", q.units}});
  }
  return {{"program", task.program},
          {"configuration", task.configuration},
          {"seconds", number(result.seconds)},
          {"quantities", std::move(quantities)}};
}

TaskResult from_json(const nlohmann::json& json) {
  TaskResult out;
  out.seconds = number(json.at("seconds"));
  for (const auto& one : json.at("quantities")) {
    Quantity q{one.at("name"), one.at("meaning"), {}, numbers(one.at("values")), one.at("whole")};
    double size = 1;
    for (const auto& d : one.at("dimensions")) {
      q.dimensions.push_back({d.at(0), d.at(1)});
      size *= static_cast<double>(q.dimensions.back().size);
    }
    q.errors = numbers(one.at("errors"));
    for (const auto& kind : one.at("error_kinds")) {
      q.error_kinds.push_back(from_name<ErrorKind>("error_kind", kind.get<std::string>()));
    }
    q.role = one.at("role");
    q.error_name = one.at("error_name");
    q.texts = one.at("texts").get<std::vector<std::string>>();
    q.integers = one.at("integers").get<std::vector<std::int64_t>>();
    q.units = one.at("units");
    const std::size_t count = q.values.size() + q.texts.size() + q.integers.size();
    if (size != static_cast<double>(count) || !(q.errors.empty() || q.errors.size() == count)) {
      throw Error(fmt::format("{} has {} numbers or texts, which is not its shape", q.name, count));
    }
    out.quantities.push_back(std::move(q));
  }
  return out;
}

bool read_text(const fs::path& path, std::string& out) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  std::stringstream content;
  content << in.rdbuf();
  out = content.str();
  return !in.bad();
}

/// The name of a task is its fingerprint. Whatever else is in the folder is not ours.
bool is_task(const std::string& name) {
  constexpr std::size_t kDigits = 32;
  return name.size() == kDigits + std::string(kExtension).size() && name.ends_with(kExtension) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

/// The second line, if the first one vouches for it.
std::string checked(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with(kHeader) || end == std::string::npos) {
    throw Error("its first line is not that of a task");
  }
  const std::string sum =
      text.substr(std::string(kHeader).size(), end - std::string(kHeader).size());
  std::string rest = text.substr(end + 1);
  if (fingerprint(rest).text() != sum) throw Error("its contents do not have its checksum");
  return rest;
}

}  // namespace

TaskStore::TaskStore(const std::string& folder)
    : folder_(folder), lock_([&] {
        std::error_code error;
        fs::create_directories(folder, error);
        if (error) throw FileError(folder, "cannot be made: " + error.message());
        return FileLock((fs::path(folder) / kLockName).string(), folder, FileLock::AtEnd::keep);
      }()) {}

fs::path TaskStore::path_of(const Fingerprint& task) const {
  return folder_ / (task.text() + kExtension);
}

bool TaskStore::has(const Fingerprint& task) const {
  std::error_code error;
  return fs::exists(path_of(task), error);
}

TaskStore::Loaded TaskStore::load(const TaskIdentity& task) const {
  const fs::path path = path_of(task.fingerprint());
  Loaded out;
  std::error_code error;
  if (!fs::exists(path, error)) return out;
  try {
    std::string text;
    if (!read_text(path, text)) throw Error("it cannot be read");
    const auto json = nlohmann::json::parse(checked(text));
    if (json.at("program") != task.program || json.at("configuration") != task.configuration) {
      throw Error("it is of another task");
    }
    out.result = from_json(json);
    out.found = Found::whole;
  } catch (const nlohmann::json::exception&) {
    out.why = fmt::format("{} is damaged: it is not the JSON of a task", path.string());
  } catch (const Error& e) {
    out.why = fmt::format("{} is damaged: {}", path.string(), e.what());
  }
  if (out.found != Found::whole) out.found = Found::damaged;
  return out;
}

void TaskStore::save(const TaskIdentity& task, const TaskResult& result) {
  const std::string rest = to_json(task, result).dump() + '\n';
  write_atomically(path_of(task.fingerprint()).string(),
                   kHeader + fingerprint(rest).text() + '\n' + rest);
}

void TaskStore::tidy(const std::string& program, const std::vector<Fingerprint>& wanted,
                     std::size_t most) const {
  std::vector<std::string> names;
  for (const Fingerprint& one : wanted) names.push_back(one.text() + kExtension);
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(error)) continue;
    // Parts of a task from a killed writer.
    const std::size_t mark = name.find('.', name.find('.') + 1);
    if (mark != std::string::npos && is_task(name.substr(0, mark))) {
      remove_leftovers((folder_ / name.substr(0, mark)).string());
    }
    if (!is_task(name)) continue;
    if (std::ranges::binary_search(names, name)) continue;
    others.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::ranges::sort(others, std::ranges::greater{});
  std::size_t kept = 0;
  for (const auto& [time, path] : others) {
    std::string text;
    bool ours = kept < most && read_text(path, text);
    if (ours) {
      try {
        ours = nlohmann::json::parse(checked(text)).at("program") == program;
      } catch (const std::exception&) {
        ours = false;
      }
    }
    if (ours) {
      ++kept;
    } else {
      fs::remove(path, error);
    }
  }
}

void TaskStore::remove() const {
  tidy("", {}, 0);
  std::error_code ignored;
  fs::remove(folder_ / kLockName, ignored);
  fs::remove(folder_, ignored);  // if it is empty
}

}  // namespace headflow
