#pragma once

// The paper's figures as data: which runs a figure needs, and the settings of each run.

#include <string>
#include <utility>
#include <vector>

namespace headflow {

struct PaperRun {
  std::string name;     ///< of the result file, without ".nc"
  std::string command;  ///< flow or compare
  /// Keys and values, as flags would give them.
  std::vector<std::pair<std::string, std::string>> settings;
};

struct PaperFigure {
  std::string id;  ///< its number in the paper, or a name if it is not there
  std::string title;
  std::vector<std::string> runs;  ///< names
};

const std::vector<PaperFigure>& paper_figures();
/// Every run of the given figures, once each, in order. Throws Error for an unknown figure.
std::vector<PaperRun> paper_runs(const std::vector<std::string>& figure_ids);

}  // namespace headflow
