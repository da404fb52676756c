#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/command.h"
#include "cli/python.h"
#include "cli/sweep_progress.h"
#include "core/error.h"
#include "core/suggest.h"
#include "core/workers.h"
#include "io/atomic_file.h"
#include "sweep/sweep.h"

namespace headflow::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Files of a figure, by its name.
using Figures = std::map<std::string, std::vector<SweepFile>>;

Figures figures_in(const std::string& folder) {
  Figures out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    SweepFile file = read_sweep_file(entry.path().string());
    out[file.figure].push_back(std::move(file));
  }
  for (auto& [name, files] : out) std::ranges::sort(files, {}, &SweepFile::path);
  return out;
}

/// fig05, fig5 or 5; all, or nothing, are all that the paper has.
std::set<std::string> chosen(const std::vector<std::string>& names, const Figures& figures) {
  std::set<std::string> out;
  std::vector<std::string> known;
  for (const auto& [name, files] : figures) known.push_back(name);
  std::vector<std::string> wanted = names;
  if (wanted.empty()) wanted = {"all"};
  for (std::string name : wanted) {
    if (name == "all") {
      for (const std::string& one : known) {
        if (one.starts_with("fig")) out.insert(one);
      }
      continue;
    }
    const std::string digits = name.starts_with("fig") ? name.substr(3) : name;
    if (!digits.empty() && digits.size() < 3 &&
        digits.find_first_not_of("0123456789") == std::string::npos) {
      name = fmt::format("fig{:02}", std::stoi(digits));
    }
    if (!figures.contains(name)) {
      throw Error(fmt::format("figure {}: {}", in_quotes(name), one_of(known, name)));
    }
    out.insert(name);
  }
  return out;
}

nlohmann::ordered_json read_times(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw FileError(path, "is a folder; move it away");
  std::ifstream in(path);
  if (!in) return nlohmann::ordered_json::object();
  auto out = nlohmann::ordered_json::parse(in, nullptr, false);
  return out.is_object() ? out : nlohmann::ordered_json::object();
}

/// The drawings that we have: files of the package with a function draw(folder, name).
std::vector<std::string> drawings() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(data_path("python/headflow/figures"))) {
    if (entry.path().extension() != ".py") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("def draw(folder, name")) continue;
      out.push_back(entry.path().stem().string());
      break;
    }
  }
  std::ranges::sort(out);
  return out;
}

/// A configuration may name one of them, and nothing else that Python could import.
void check_drawing(const SweepFile& file, const std::string& figure) {
  static const std::vector<std::string> known = drawings();
  const std::string& name = file.drawing.empty() ? figure : file.drawing;
  if (std::ranges::count(known, name) > 0) return;
  throw Error(
      fmt::format("{}: figure.drawing = {}: {}", file.path, in_quotes(name), one_of(known, name)));
}

struct Paper {
  std::vector<SweepJob> jobs;
  std::vector<std::string> figure_of;  ///< of each job
};

Paper plan(const Invocation& call, const std::string& folder) {
  Paper out;
  Figures figures = figures_in(data_path("configs/paper"));
  for (const std::string& name : chosen(call.names, figures)) {
    bool first = true;
    for (SweepFile& file : figures.at(name)) {
      const std::string stem = fs::path(file.path).stem().string();
      if (std::exchange(first, false) || !file.drawing.empty()) check_drawing(file, name);
      SweepJob job;
      job.keep_tasks = file.keep_tasks;
      job.file = std::move(file);
      job.output = folder + "/" + stem + ".nc";
      job.command_line = call.command_line;
      job.label = stem + "  ";
      job.replace = true;
      out.jobs.push_back(std::move(job));
      out.figure_of.push_back(name);
    }
  }
  return out;
}

/// Adds what was computed to times.json; what is up to date keeps its times.
void keep_times(const std::string& path, const Paper& paper,
                const std::vector<SweepOutcome>& outcomes, double seconds, int cores) {
  nlohmann::ordered_json times = read_times(path);
  std::set<std::string> renewed;
  bool any = false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SweepOutcome& outcome = outcomes[i];
    if (outcome.up_to_date) continue;
    any = true;
    nlohmann::ordered_json& entry = times[paper.figure_of[i]];
    if (renewed.insert(paper.figure_of[i]).second || !entry.is_object()) {
      entry = {{"core_seconds", 0.0}, {"tasks", 0}, {"shared", 0}};
    }
    entry["core_seconds"] = entry["core_seconds"].get<double>() + outcome.seconds;
    entry["tasks"] = entry["tasks"].get<std::size_t>() + outcome.tasks;
    entry["shared"] = entry["shared"].get<std::size_t>() + outcome.shared;
  }
  if (any) times["compute"] = {{"seconds", seconds}, {"cores", cores}};
  write_atomically(path, times.dump(2) + "\n");
}

int draw(const Invocation& call, const std::string& folder, const std::set<std::string>& figures) {
  const std::string python = drawing_python();
  if (python.empty()) {
    fmt::print(stderr, "headflow: note: nothing was drawn: {}\n", how_to_draw());
    return kSuccess;
  }
  std::vector<std::string> arguments = {folder};
  arguments.insert(arguments.end(), figures.begin(), figures.end());
  return run_module(python, "headflow.figures.draw", arguments, call.quiet) == 0 ? kSuccess
                                                                                 : kInternalError;
}

std::vector<std::string> figure_names() {
  std::vector<std::string> out;
  for (const auto& [name, files] : figures_in(data_path("configs/paper"))) out.push_back(name);
  return out;
}

/// For a shell, which is offered nothing if the configurations are not found.
std::vector<std::string> offered() {
  std::vector<std::string> out = {"all", "list"};
  try {
    for (std::string& name : figure_names()) out.push_back(std::move(name));
  } catch (const Error&) {
    out.resize(2);
  }
  return out;
}

int run_reproduce(Invocation& call) {
  if (call.names == std::vector<std::string>{"list"}) {
    for (const std::string& name : figure_names()) fmt::print("{}\n", name);
    return kSuccess;
  }
  const std::string folder =
      call.config.result.output.empty() ? "out/paper" : call.config.result.output;
  const Paper paper = plan(call, folder);
  std::error_code error;
  fs::create_directories(folder + "/configs", error);
  if (error) throw FileError(folder, fmt::format("cannot be made: {}", error.message()));
  for (const SweepJob& job : paper.jobs) {
    write_atomically(folder + "/configs/" + fs::path(job.file.path).filename().string(),
                     job.file.text);
  }
  static_cast<void>(read_times(folder + "/times.json"));  // before hours are spent
  const auto begin = Clock::now();
  const std::vector<SweepOutcome> outcomes =
      sweep_with_progress(paper.jobs, call.config.program.threads, "reproduce", call.quiet);
  const double seconds = seconds_since(begin);
  auto report = nlohmann::ordered_json::array();
  bool whole = true;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SweepOutcome& outcome = outcomes[i];
    whole = whole && outcome.state() != SweepState::interrupted;
    report.push_back({{"figure", paper.figure_of[i]},
                      {"file", paper.jobs[i].output},
                      {"outcome", to_string(outcome.state())},
                      {"tasks", outcome.tasks},
                      {"kept", outcome.kept},
                      {"shared", outcome.shared},
                      {"core_seconds", outcome.seconds}});
  }
  if (call.json) fmt::print("{}\n", report.dump(2));
  if (!whole) {
    fmt::print(stderr, "interrupted; the same command goes on with the rest\n");
    return kInterrupted;
  }
  keep_times(folder + "/times.json", paper, outcomes, seconds,
             thread_executor(call.config.program.threads)->workers());
  if (!call.quiet) fmt::print(stderr, "computed in {:.1f} s; results in {}\n", seconds, folder);
  const auto drawing = Clock::now();
  catch_interrupts();
  const int code = draw(call, folder, {paper.figure_of.begin(), paper.figure_of.end()});
  nlohmann::ordered_json times = read_times(folder + "/times.json");
  times["draw"] = {{"seconds", seconds_since(drawing)}};
  write_atomically(folder + "/times.json", times.dump(2) + "\n");
  return code;
}

}  // namespace

const Command& reproduce_command() {
  static const Command command{
      .name = "reproduce",
      .summary = "the paper's figures: numbers and pictures",
      .description =
          "Runs the configurations of the paper's figures (configs/paper/figNN.toml; all twenty\n"
          "if none is named) as sweeps, and draws them if there is Python with matplotlib. The\n"
          "folder given by --output (out/paper) then holds figNN.nc, configs/figNN.toml,\n"
          "figures/figNN.png, .svg and .pdf, and times.json. What is up to date is kept; what was\n"
          "computed by another version of the program, or with another configuration, is "
          "replaced.\n"
          "finite_rate, which is not in the paper, is there by name only.\n\n"
          "examples:\n"
          "  headflow reproduce list\n"
          "  headflow reproduce fig02\n"
          "  headflow reproduce all --output out/paper\n",
      .sections = {"result.output", "program"},
      .takes_file = false,
      .only = nullptr,
      .run = run_reproduce,
      .names = "Figures, as in fig02 fig05; default all; list prints their names",
      .offered_names = offered};
  return command;
}

}  // namespace headflow::cli
