#include "io/comparison_file.h"

#include <algorithm>
#include <cmath>

namespace headflow {
namespace {

struct Sum {
  double squares = 0, largest = 0, count = 0;
  void add(const Matrix& difference) {
    squares += difference.squaredNorm();
    largest = std::max(largest, difference.cwiseAbs().maxCoeff());
    count += static_cast<double>(difference.size());
  }
  Deviation result() const { return {std::sqrt(squares / std::max(1.0, count)), largest}; }
};

}  // namespace

Deviations deviations(const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const Theory& theory) {
  Sum m, q, loss;
  std::size_t times = recorded.front().size();
  for (std::size_t run = 0; run < recorded.size(); ++run) {
    const Trajectory& trajectory = theory.runs[run];
    const std::size_t n = std::min(recorded[run].size(), trajectory.time.size());
    times = std::min(times, n);
    for (std::size_t i = 0; i < n; ++i) {
      const SgdRecord& record = recorded[run][i];
      m.add(record.state.m() - trajectory.point[i].m);
      q.add(record.state.q() - theory.q[run][i]);
      const double of_sgd = population.loss.empty() ? record.loss.mean : population.loss[run][i];
      loss.add(Matrix::Constant(1, 1, of_sgd - trajectory.loss[i]));
    }
  }
  return {m.result(), q.result(), loss.result(), times};
}

void write_comparison(const std::string& path, const Problem& problem, const SgdOptions& options,
                      const std::vector<std::int64_t>& output_steps,
                      const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const SgdSummary& summary,
                      const std::vector<Theory>& theories, const Provenance& provenance) {
  NetcdfWriter file;
  write_sgd_runs(file, problem, options, output_steps, recorded, population, summary);
  file.dimension("theory", theories.size());
  const std::size_t outputs = recorded.front().size();
  // A trajectory that ended early (a flow that diverged) is filled up with NaN.
  const auto collect = [&](std::size_t size, const auto& value) {
    std::vector<double> out;
    for (const Theory& theory : theories) {
      for (std::size_t run = 0; run < theory.runs.size(); ++run) {
        for (std::size_t i = 0; i < outputs; ++i) {
          if (i < theory.runs[run].time.size()) {
            const Matrix numbers = value(theory, run, i);
            out.insert(out.end(), numbers.data(), numbers.data() + numbers.size());
          } else {
            out.insert(out.end(), size, std::nan(""));
          }
        }
      }
    }
    return out;
  };
  const auto H = static_cast<std::size_t>(problem.H()), F = static_cast<std::size_t>(problem.F());
  const auto point = [](const Theory& theory, std::size_t run, std::size_t i) {
    return theory.runs[run].point[i];
  };
  const auto number = [](double x) { return Matrix(Matrix::Constant(1, 1, x)); };
  file.variable("m_theory", {"theory", "run", "time", "attention_head", "feature"},
                collect(H * F, [&](auto&... at) { return point(at...).m; }),
                described("m by the theory, from the start of the run"));
  file.variable("q_theory", {"theory", "run", "time", "attention_head", "other_head"},
                collect(H * H, [](const Theory& theory, std::size_t run,
                                  std::size_t i) { return theory.q[run][i]; }),
                described("q by the theory"));
  const Blocks unknown;
  std::vector<const Blocks*> blocks;
  for (const Theory& theory : theories) {
    for (const Trajectory& run : theory.runs) {
      for (std::size_t i = 0; i < outputs; ++i) {
        blocks.push_back(i < run.point.size() ? &run.point[i].blocks : &unknown);
      }
    }
  }
  write_blocks(file, problem, {"theory", "run", "time"}, blocks, "_theory");
  file.variable("loss_theory", {"theory", "run", "time"},
                collect(1, [&](const Theory& theory, std::size_t run,
                               std::size_t i) { return number(theory.runs[run].loss[i]); }),
                {{"long_name", "population loss by the theory"},
                 {"units", "1"},
                 {"ancillary_variables", "loss_theory_error"}});
  file.variable(
      "loss_theory_error", {"theory", "run", "time"},
      collect(1, [&](const Theory& theory, std::size_t run,
                     std::size_t i) { return number(theory.runs[run].loss_error[i]); }),
      {{"long_name", "error of the loss; its kind is an attribute of the file, as flow_error_kind"},
       {"units", "1"}});
  std::vector<std::string> names;
  for (const Theory& theory : theories) {
    names.push_back(theory.name);
    const Deviations off = deviations(recorded, population, theory);
    const auto add = [&](const char* quantity, const Deviation& deviation) {
      file.attribute(theory.name + "_rms_" + quantity, deviation.rms);
      file.attribute(theory.name + "_largest_" + quantity, deviation.largest);
    };
    add("m", off.m);
    add("q", off.q);
    add("loss", off.loss);
    file.attribute(theory.name + "_times_compared", static_cast<long long>(off.times));
    file.attribute(theory.name + "_engine", theory.engine);
    file.attribute(theory.name + "_error_kind", std::string(to_string(theory.error_kind)));
  }
  file.variable("theory", {"theory"}, names, {{"long_name", "limit that SGD is compared with"}});
  write_provenance(file, "headflow: SGD and its limits", "headflow-comparison", provenance);
  file.write(path);
}

}  // namespace headflow
