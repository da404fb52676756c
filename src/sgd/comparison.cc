#include "sgd/comparison.h"

#include <algorithm>
#include <cmath>

namespace headflow {
namespace {

struct DeviationSum {
  double squares = 0, largest = 0, count = 0;
  void add(const Matrix& difference) {
    squares += difference.squaredNorm();
    largest = std::max(largest, difference.cwiseAbs().maxCoeff());
    count += static_cast<double>(difference.size());
  }
  Deviation result() const { return {std::sqrt(squares / std::max(1.0, count)), largest}; }
};

}  // namespace

Theory follow_limit(const Problem& problem, const EngineOptions& engine, const SgdOptions& sgd,
                    const SgdRuns& runs, const LimitOptions& options, const Context& context) {
  Theory out{options.kind, {}, {}, "", ErrorKind::refinement};
  for (std::size_t run = 0; run < runs.recorded.size(); ++run) {
    const std::string label =
        fmt::format("{} [{}/{}]", to_string(options.kind), run + 1, runs.recorded.size());
    const Context told = context.labelled(label);
    const Limit limit = make_limit(problem, engine, sgd, runs.recorded[run].front().state,
                                   runs.output_steps, options, told);
    Trajectory trajectory;
    const FlowSummary summary =
        integrate_flow(*limit.engine, limit.start, limit.flow, trajectory, told);
    if (summary.outcome == FlowOutcome::interrupted) throw Interrupted();
    if (summary.outcome == FlowOutcome::diverged) {
      context.note(fmt::format("{}: {}", label, summary.message));
    }
    out.q.emplace_back();
    for (Point& point : trajectory.point) {
      out.q.back().push_back(point.q());
      point = limit.problem.frame().leave(point);
    }
    out.runs.push_back(std::move(trajectory));
    out.engine = limit.engine->name();
    out.error_kind = limit.engine->error_kind();
  }
  return out;
}

Deviations deviations(const SgdRuns& runs, const Theory& theory) {
  DeviationSum m, q, loss;
  std::size_t times = runs.recorded.front().size();
  for (std::size_t run = 0; run < runs.recorded.size(); ++run) {
    const Trajectory& trajectory = theory.runs[run];
    const std::size_t n = std::min(runs.recorded[run].size(), trajectory.time.size());
    times = std::min(times, n);
    for (std::size_t i = 0; i < n; ++i) {
      const SgdRecord& record = runs.recorded[run][i];
      m.add(record.state.m() - trajectory.point[i].m);
      q.add(record.state.q() - theory.q[run][i]);
      const double of_sgd =
          runs.population.loss.empty() ? record.loss.mean : runs.population.loss[run][i];
      loss.add(Matrix::Constant(1, 1, of_sgd - trajectory.loss[i]));
    }
  }
  return {m.result(), q.result(), loss.result(), times};
}

double noise_of(const SgdOptions& options) {
  return options.lr * static_cast<double>(options.dim) / static_cast<double>(options.batch);
}

}  // namespace headflow
