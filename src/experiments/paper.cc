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
  return {fmt::format("plane_softmax_flipping_H{}", heads), "flow",
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

/// SGD at D = N = 10^4 over the flow. tau: where the flow from noise has every overlap within 0.1
/// or so of its end, which for B-softmax and the Gaussian prior takes too long; there, within 0.3.
PaperRun sgd_run(const std::string& name, const std::string& activation, const std::string& prior,
                 const std::string& nu, int tokens, int heads, double tau, int runs) {
  return {name, "compare",
          Settings{{"problem.activation", activation},
                   {"problem.prior", prior},
                   {"problem.tokens", fmt::format("{}", tokens)},
                   {"problem.heads", fmt::format("{}", heads)},
                   {"problem.features", "2"},
                   {"problem.nu", nu},
                   {"problem.eta", "1"},
                   {"run.tolerance", "1e-5"},
                   {"run.seed", "1"},
                   {"sgd.dim", "10000"},
                   {"sgd.batch", "10000"},
                   {"sgd.lr", "0.02"},
                   {"sgd.tau", fmt::format("{}", tau)},
                   {"sgd.runs", fmt::format("{}", runs)},
                   {"sgd.spacing", "log"},
                   {"sgd.outputs", "120"}}};
}

/// Where the learning rate is not small: kappa = lr D / N of 0.5 and 5.
PaperRun finite_rate_run(const std::string& name, int batch) {
  return {name, "compare",
          Settings{{"problem.activation", "softmax"},
                   {"problem.prior", "flipping"},
                   {"problem.tokens", "4"},
                   {"problem.heads", "2"},
                   {"problem.features", "2"},
                   {"problem.nu", "2,1"},
                   {"problem.eta", "1"},
                   {"run.tolerance", "1e-3"},
                   {"run.seed", "1"},
                   {"sgd.dim", "2000"},
                   {"sgd.batch", fmt::format("{}", batch)},
                   {"sgd.lr", "0.5"},
                   {"sgd.tau", "20"},
                   {"sgd.runs", "20"},
                   {"sgd.outputs", "40"},
                   {"compare.theory", "flow,kappa,map"}}};
}

constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

std::string sgd_name(int figure, const std::string& activation) {
  return fmt::format("sgd_fig{:02}_{}", figure, activation);
}

std::vector<std::string> sgd_names(int figure) {
  std::vector<std::string> out;
  for (const char* activation : kActivations) out.push_back(sgd_name(figure, activation));
  return out;
}

const std::vector<PaperRun>& all_runs() {
  static const std::vector<PaperRun> runs = [] {
    std::vector<PaperRun> out = {plane_run(2), plane_run(4), plane_run(5), plane_run(8)};
    const auto add = [&](int figure, const std::string& activation, double tau, int runs_of_sgd) {
      out.push_back(sgd_run(sgd_name(figure, activation), activation,
                            figure == 10 ? "gaussian" : "flipping", figure == 10 ? "8,2" : "2,2",
                            figure == 1 ? 10 : 5, figure == 10 ? 4 : 2, tau, runs_of_sgd));
    };
    add(1, "softmax", 150, 3);
    add(9, "softmax", 200, 3);
    add(9, "softmax-1", 800, 1);
    add(9, "b-softmax", 100, 3);
    add(10, "softmax", 1500, 1);
    add(10, "softmax-1", 900, 1);
    add(10, "b-softmax", 400, 1);
    out.push_back(finite_rate_run("finite_rate_N2000", 2000));
    out.push_back(finite_rate_run("finite_rate_N200", 200));
    return out;
  }();
  return runs;
}

}  // namespace

const std::vector<PaperFigure>& paper_figures() {
  static const std::vector<std::string> plane = {
      "plane_softmax_flipping_H2", "plane_softmax_flipping_H4", "plane_softmax_flipping_H5",
      "plane_softmax_flipping_H8"};
  static const std::vector<PaperFigure> figures = {
      {"1", "SGD over the flow, softmax, flipping spike, L = 10", {sgd_name(1, "softmax")}},
      {"2",
       "Evolution of the heads, flipping spike",
       {"plane_softmax_flipping_H2", "plane_softmax_flipping_H5", "plane_softmax_flipping_H8"}},
      {"9", "SGD over the flow, flipping spike, three activations", sgd_names(9)},
      {"10", "SGD over the flow, Gaussian prior, four heads, three activations", sgd_names(10)},
      {"15", "Heads in the plane for H = 2, 4, 5, 8, flipping spike", plane},
      {"finite-rate",
       "SGD at a finite learning rate, and its limits",
       {"finite_rate_N2000", "finite_rate_N200"}}};
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
