#include "experiments/paper.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Heads in the plane (k*_1, k*_2): softmax, flipping spike, L = 4, nu = 2, 2.
PaperRun plane_run(int heads) {
  return {fmt::format("plane_softmax_flipping_H{}", heads),
          Settings{{"problem.activation", "softmax"},
                   {"problem.prior", "flipping"},
                   {"problem.tokens", "4"},
                   {"problem.heads", fmt::format("{}", heads)},
                   {"problem.features", "2"},
                   {"problem.nu", "2,2"},
                   {"problem.eta", "1"},
                   {"run.engine", "factorised"},
                   {"run.tolerance", "1e-7"},
                   {"run.seed", "1"},
                   {"flow.integrator", "implicit"},
                   {"flow.time", "1e6"},
                   {"flow.gradient_tolerance", "1e-6"},
                   {"flow.spacing", "log"},
                   {"flow.first_output", "0.1"},
                   {"flow.outputs", "400"}}};
}

const std::vector<PaperRun>& all_runs() {
  static const std::vector<PaperRun> runs = {plane_run(2), plane_run(4), plane_run(5),
                                             plane_run(8)};
  return runs;
}

}  // namespace

const std::vector<PaperFigure>& paper_figures() {
  static const std::vector<std::string> plane = {
      "plane_softmax_flipping_H2", "plane_softmax_flipping_H4", "plane_softmax_flipping_H5",
      "plane_softmax_flipping_H8"};
  static const std::vector<PaperFigure> figures = {
      {"2",
       "Evolution of the heads, flipping spike",
       {"plane_softmax_flipping_H2", "plane_softmax_flipping_H5", "plane_softmax_flipping_H8"}},
      {"15", "Heads in the plane for H = 2, 4, 5, 8, flipping spike", plane}};
  return figures;
}

std::vector<PaperRun> paper_runs(const std::vector<std::string>& figure_ids) {
  std::vector<std::string> known;
  for (const PaperFigure& figure : paper_figures()) known.push_back(figure.id);
  for (const std::string& id : figure_ids) {
    if (std::find(known.begin(), known.end(), id) == known.end()) {
      throw Error(fmt::format("figure {}: {}", in_quotes(id), one_of(known, id)));
    }
  }
  std::vector<PaperRun> out;
  for (const PaperRun& run : all_runs()) {
    const bool wanted =
        std::any_of(paper_figures().begin(), paper_figures().end(), [&](const auto& figure) {
          const bool listed = figure_ids.empty() || std::find(figure_ids.begin(), figure_ids.end(),
                                                              figure.id) != figure_ids.end();
          return listed &&
                 std::find(figure.runs.begin(), figure.runs.end(), run.name) != figure.runs.end();
        });
    if (wanted) out.push_back(run);
  }
  return out;
}

}  // namespace headflow
