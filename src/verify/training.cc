// What sections III and IV say in words about training, as numbers.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/phases.h"
#include "verify/claim.h"
#include "verify/figure_tasks.h"
#include "verify/runs.h"
#include "verify/setting.h"
#include "verify/statistics.h"

namespace headflow {
namespace {

/// One flow from the paper's initial law, or from less noise.
Trajectory train_once(const Problem& problem, double time, std::uint64_t seed, double tolerance,
                      const Context& context, double noise = 0.01) {
  FlowOptions flow;
  flow.integrator = Scheme::implicit;
  flow.time = time;
  flow.rtol = 1e-5;
  flow.atol = 1e-5 * noise;
  flow.spacing = Spacing::log;
  flow.first_output = 0.5;
  flow.outputs = 200;
  const Point start = initial_point(problem, noise, seed);
  return flow_from(problem, start, flow, on_one_core(tolerance), context);
}

std::vector<Trajectory> train(const Problem& problem, double time, int starts, double tolerance,
                              const Context& context) {
  std::vector<Trajectory> runs;
  for (int i = 0; i < starts; ++i) {
    runs.push_back(
        train_once(problem, time, static_cast<std::uint64_t>(i) + 1, tolerance, context));
  }
  return runs;
}

/// Every other output of a run.
Trajectory coarser(const Trajectory& run) {
  Trajectory out;
  for (std::size_t i = 0; i < run.time.size(); i += 2) {
    out.time.push_back(run.time[i]);
    out.point.push_back(run.point[i]);
  }
  return out;
}

/// Smallest ratio of the times at which successive directions are learnt; NaN unless all are.
double smallest_ratio(const Trajectory& run, const Matrix& directions) {
  const std::vector<double> times = specialisation_times(run, directions);
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t f = 1; f < times.size(); ++f) {
    if (std::isnan(times[f]) || std::isnan(times[f - 1])) return std::nan("");
    smallest = std::min(smallest, times[f] / times[f - 1]);
  }
  return smallest;
}

/// All directions are learnt, and in order.
std::vector<Row> learning_order(const std::vector<Trajectory>& runs, const Matrix& directions,
                                const std::string& where) {
  double smallest = std::numeric_limits<double>::infinity(), error = 0;
  std::ptrdiff_t fewest = directions.cols();
  for (const Trajectory& run : runs) {
    const std::vector<double> times = specialisation_times(run, directions);
    fewest = std::min(fewest, std::ranges::count_if(times, [](double t) { return t > 0; }));
    const double ratio = smallest_ratio(run, directions);
    error = std::max(error, std::abs(smallest_ratio(coarser(run), directions) - ratio));
    if (!(ratio >= smallest)) smallest = ratio;  // NaN stays
  }
  Row row{"Claim order", "all features are learnt: fewest in a run", where};
  row.predicted = {static_cast<double>(directions.cols())};
  row.measured = static_cast<double>(fewest);
  row.error_kind = ErrorKind::count;
  row.smallest_wrong = row.predicted.value - 1;
  std::vector<Row> rows = {row};
  row.statement = "features are learnt in the order of the eigenvalues of Cov theta";
  row.setting = where + ": smallest ratio of successive tau_s";
  row.predicted = {1, Relation::at_least};
  row.measured = smallest;
  row.error = error;
  row.error_kind = ErrorKind::outputs;
  row.smallest_wrong = 1000;  // a feature that is never learnt has no tau_s
  rows.push_back(row);
  return rows;
}

/// Heads on the 2^F combinations of signs.
Row sign_combinations(const std::vector<Trajectory>& runs, const Matrix& directions,
                      const std::string& where) {
  std::size_t fewest = 1000;
  for (const Trajectory& run : runs) {
    std::set<std::vector<int>> different;
    for (const std::vector<int>& signs : sign_patterns(run.point.back(), directions)) {
      if (std::ranges::find(signs, 0) == signs.end()) different.insert(signs);
    }
    fewest = std::min(fewest, different.size());
  }
  Row row{"Claim signs", "heads end on the 2^F combinations +-s_1 +- ... +- s_F",
          where + ": fewest different combinations in a run"};
  row.predicted = {std::pow(2.0, static_cast<double>(directions.cols()))};
  row.measured = static_cast<double>(fewest);
  row.error_kind = ErrorKind::count;
  row.smallest_wrong = row.predicted.value - 1;
  return row;
}

/// B-softmax: one head on +s_f and one on -s_f, and no head on two directions.
Row pairs(const std::vector<Trajectory>& runs, const Matrix& directions, const std::string& where) {
  int fewest = 1000;
  for (const Trajectory& run : runs) {
    const auto patterns = sign_patterns(run.point.back(), directions);
    int complete = 0;
    for (Eigen::Index f = 0; f < directions.cols(); ++f) {
      int plus = 0, minus = 0;
      for (const std::vector<int>& signs : patterns) {
        if (std::ranges::count(signs, 0) != directions.cols() - 1) continue;
        plus += signs[static_cast<std::size_t>(f)] == 1;
        minus += signs[static_cast<std::size_t>(f)] == -1;
      }
      complete += plus == 1 && minus == 1;
    }
    fewest = std::min(fewest, complete);
  }
  Row row{"Claim pairs", "B-softmax: a pair of heads takes each direction, +s_f and -s_f",
          where + ": fewest directions so taken in a run"};
  row.predicted = {static_cast<double>(directions.cols())};
  row.measured = fewest;
  row.error_kind = ErrorKind::count;
  row.smallest_wrong = row.predicted.value - 1;
  return row;
}

std::vector<Row> order_and_signs(const ProblemOptions& options,
                                 const std::vector<Trajectory>& runs) {
  const Matrix directions = principal_directions(Problem(options));
  const std::string where = fmt::format("{}; {} starts", text(options), runs.size());
  std::vector<Row> rows = learning_order(runs, directions, where);
  rows.push_back(options.activation == "b-softmax" ? pairs(runs, directions, where)
                                                   : sign_combinations(runs, directions, where));
  return rows;
}

std::vector<Row> order_and_signs(const char* activation, int L, int H, int F, double nu1,
                                 double nu2, double time, int starts, double tolerance,
                                 const Context& context) {
  const ProblemOptions options = setting(activation, "gaussian", L, H, F, {nu1, nu2});
  return order_and_signs(options, train(Problem(options), time, starts, tolerance, context));
}

/// The overlaps m along a flow that a figure shows, too.
Trajectory overlaps_over_time(const Config& task, const KnownTasks* known, const Context& context) {
  const Dataset found = known_or_measured(known, task, stages_measures(), context);
  const Eigen::Index H = task.problem.heads, F = task.problem.features;
  Trajectory out;
  out.time = found["tau"].values;
  for (std::size_t i = 0; i < out.time.size(); ++i) {
    Point& point = out.point.emplace_back();
    point.m = Eigen::Map<const Matrix>(
        found["m_t"].values.data() + static_cast<Eigen::Index>(i) * H * F, H, F);
  }
  return out;
}

std::vector<Row> three_stages(int starts, const KnownTasks* known, const Context& context) {
  const ProblemOptions options = setting("softmax", "gaussian", 5, 8, 3, {20, 1});
  std::vector<Trajectory> runs;
  for (int i = 0; i < starts; ++i) {
    const Config task = stages_task(options, static_cast<std::uint64_t>(i) + 1);
    runs.push_back(overlaps_over_time(task, known, context));
  }
  return order_and_signs(options, runs);
}

// A covariance that is not diagonal: eigenvalues 8 and 2 at an angle of 0.6.
std::vector<Row> principal_components(const Context& context) {
  ProblemOptions options = setting("softmax", "gaussian", 4, 4, 2, {});
  Matrix turn(2, 2);
  turn << std::cos(0.6), -std::sin(0.6), std::sin(0.6), std::cos(0.6);
  options.prior_parameters["covariance"] =
      turn * Eigen::Vector2d(8, 2).asDiagonal() * turn.transpose();
  const Problem problem(options);
  const Matrix directions = principal_directions(problem);
  const std::vector<Trajectory> runs = train(problem, 2000, 2, 1e-5, context);
  const std::string where =
      "softmax, gaussian, L 4, H 4, F 2, Cov with eigenvalues 8 and 2 at an angle of 0.6; 2 starts";
  std::vector<Row> rows = learning_order(runs, directions, where);
  rows.push_back(sign_combinations(runs, directions, where));
  // Between the two: everything that heads have learnt is along the first eigenvector.
  const auto share_at = [&](const Trajectory& run) {
    const double when = 2 * specialisation_times(run, directions)[0];
    std::size_t i = 0;
    while (i + 1 < run.time.size() && !(run.time[i] >= when)) ++i;
    const double first = head_spread(run.point[i], directions.col(0));
    const double second = head_spread(run.point[i], directions.col(1));
    return first * first / (first * first + second * second);
  };
  double least = 1, error = 0;
  for (const Trajectory& run : runs) {
    least = std::min(least, share_at(run));
    error = std::max(error, std::abs(share_at(coarser(run)) - share_at(run)));
  }
  Row row{"Claim order", "the first direction is the first eigenvector: its share at 2 tau_s",
          where};
  row.predicted = {1};
  row.measured = least;
  row.error = error;
  row.error_kind = ErrorKind::outputs;
  row.slack = 0.01;
  row.smallest_wrong = 0.95;
  rows.push_back(row);
  return rows;
}

// Features of equal strength are learnt at the same time. From noise of size s both take
// log(1/s)/lambda and differ by a time of order 1/lambda, so that their ratio is near 1.
std::vector<Row> equal_strengths(Effort effort, const Context& context) {
  std::vector<Row> rows;
  const int starts = by(effort, 6, 16);
  for (const double second : {2.0, 1.0}) {
    const ProblemOptions options = setting("softmax", "gaussian", 4, 4, 2, {2, second});
    const Problem problem(options);
    std::vector<double> ratios;
    for (int i = 0; i < starts; ++i) {
      const std::vector<double> times = specialisation_times(
          train_once(problem, 2e4, static_cast<std::uint64_t>(i) + 1, 1e-5, context, 1e-7),
          Matrix::Identity(2, 2));
      ratios.push_back(std::max(times[0], times[1]) / std::min(times[0], times[1]));
    }
    const Measured mean = mean_of(ratios);
    Row row{"Claim order", "features of equal strength are learnt at the same time"};
    row.setting = fmt::format(
        "{}; tau_s of the later over that of the earlier, {} starts from "
        "noise of 1e-7",
        text(options), starts);
    row.predicted = {1.3, Relation::at_most};
    row.smallest_wrong = 1.0;
    if (second < 2) {
      row.statement = "and those of half the strength are not";
      row.predicted = {1.5, Relation::at_least};
      row.smallest_wrong = 1000;
    }
    row.measured = mean.value;
    row.error = mean.error;
    row.error_kind = ErrorKind::starts;
    rows.push_back(row);
  }
  return rows;
}

// Eight heads on two directions: uneven first splits are repaired.
std::vector<Row> uneven_splits(Effort effort, const Context& context) {
  const ProblemOptions options = setting("softmax", "gaussian", 4, 8, 2, {8, 2});
  const Problem problem(options);
  const Matrix directions = principal_directions(problem);
  const int starts = by(effort, 3, 6);
  int crossings = 0, uneven_first = 0, uneven_last = 0;
  for (const Trajectory& run : train(problem, 6000, starts, 1e-4, context)) {
    const double time = specialisation_times(run, directions)[0];
    const auto imbalance = [&](const Point& point) {
      int sum = 0;
      for (const double x : Vector(point.m * directions.col(0))) sum += x > 0 ? 1 : -1;
      return std::abs(sum);
    };
    std::size_t i = 0;
    while (run.time[i] < time) ++i;
    uneven_first += imbalance(run.point[i]) > 0;
    uneven_last += imbalance(run.point.back()) > 0;
    crossings += excursions(run, directions.col(0), 0.3);
  }
  const std::string where = fmt::format("{}; {} starts", text(options), starts);
  Row row{"Claim excursions", "first splits along s_1 may be uneven: runs where they are", where};
  row.predicted = {1, Relation::at_least};
  row.measured = uneven_first;
  row.error_kind = ErrorKind::count;
  row.smallest_wrong = starts + 1;
  std::vector<Row> rows = {row};
  row.statement = "misplaced heads make excursions: heads that change sides after the split";
  row.measured = crossings;
  row.smallest_wrong = 8 * starts;  // not every head
  rows.push_back(row);
  row.statement = "at the end the split is even: runs where it is not";
  row.predicted = {0};
  row.measured = uneven_last;
  row.smallest_wrong = 1;
  rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<Claim> training_claims(Effort effort, const std::shared_ptr<const KnownTasks>& known) {
  const bool quick = effort == Effort::quick;
  return {
      {"Claim order signs softmax", "F = 2", quick ? 3.0 : 8.0,
       [=](const Context& context) {
         return order_and_signs("softmax", 4, 4, 2, 8, 2, quick ? 2000 : 4000, quick ? 1 : 3,
                                quick ? 1e-4 : 1e-5, context);
       }},
      {"Claim order signs softmax F = 3", "F = 3", quick ? 8.0 : 30.0,
       [=](const Context& context) {
         return quick ? order_and_signs("softmax", 5, 8, 3, 20, 6, 1e4, 1, 1e-4, context)
                      : three_stages(2, known.get(), context);
       }},
      {"Claim order signs softmax-1", "F = 2", quick ? 3.0 : 8.0,
       [=](const Context& context) {
         return order_and_signs("softmax-1", 4, 4, 2, 8, 2, quick ? 2000 : 4000, quick ? 1 : 3,
                                quick ? 1e-4 : 1e-5, context);
       }},
      {"Claim order pairs B-softmax", "F = 2", quick ? 6.0 : 12.0,
       [=](const Context& context) {
         return order_and_signs("b-softmax", 4, 4, 2, 8, 2, 600, quick ? 1 : 2, 1e-4, context);
       }},
      {"Claim order PCA", "a covariance that is not diagonal", 5, principal_components},
      {"Claim order equal", "features of equal strength", quick ? 5.0 : 14.0,
       [=](const Context& context) { return equal_strengths(effort, context); }},
      {"Claim excursions", "uneven splits", quick ? 12.0 : 35.0,
       [=](const Context& context) { return uneven_splits(effort, context); }},
  };
}

}  // namespace headflow
