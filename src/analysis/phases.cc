#include "analysis/phases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index.h"

namespace headflow {

double first_crossing(std::span<const double> times, std::span<const double> values, double level) {
  if (!values.empty() && values[0] >= level) return times[0];
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (values[i] < level) continue;
    const double before = values[i - 1], after = values[i];
    const double part = before > 0 ? std::log(level / before) / std::log(after / before)
                                   : (level - before) / (after - before);
    return times[i - 1] + (times[i] - times[i - 1]) * part;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double head_spread(const Point& point, const Vector& s) {
  const Vector along = point.m * s;
  return std::sqrt((along.array() - along.mean()).square().mean());
}

std::vector<double> specialisation_times(const Trajectory& run, const Matrix& directions,
                                         double least) {
  std::vector<double> out;
  for (const auto& s : directions.colwise()) {
    std::vector<double> spread;
    for (const Point& point : run.point) spread.push_back(head_spread(point, s));
    const double largest = *std::max_element(spread.begin(), spread.end());
    out.push_back(largest < least ? std::numeric_limits<double>::quiet_NaN()
                                  : first_crossing(run.time, spread, largest / 2));
  }
  return out;
}

double mean_growth_time(const Trajectory& run, const Vector& mean_theta) {
  if (mean_theta.norm() < 1e-12) return std::nan("");
  std::vector<double> mean;
  for (const Point& point : run.point) mean.push_back((point.m * mean_theta).mean());
  const double largest = *std::max_element(mean.begin(), mean.end());
  return first_crossing(run.time, mean, 0.5 * largest);
}

std::vector<std::vector<int>> sign_patterns(const Point& point, const Matrix& directions,
                                            double share) {
  const Matrix along = point.m * directions;
  std::vector<std::vector<int>> out(at(along.rows()));
  for (Eigen::Index f = 0; f < along.cols(); ++f) {
    const double least = share * along.col(f).cwiseAbs().maxCoeff();
    for (Eigen::Index h = 0; h < along.rows(); ++h) {
      const double x = along(h, f);
      out[at(h)].push_back(std::abs(x) < least ? 0 : x > 0 ? 1 : -1);
    }
  }
  return out;
}

int excursions(const Trajectory& run, const Vector& s, double level) {
  if (run.point.empty()) return 0;
  std::vector<int> side(at(run.point[0].heads()), 0);
  int count = 0;
  for (const Point& point : run.point) {
    const Vector along = point.m * s;
    for (Eigen::Index h = 0; h < along.size(); ++h) {
      if (std::abs(along[h]) < level) continue;
      int& before = side[at(h)];
      const int now = along[h] > 0 ? 1 : -1;
      count += before == -now;
      before = now;
    }
  }
  return count;
}

Matrix principal_directions(const Problem& problem) {
  const SymmetricEigen solver(problem.prior().covariance());
  return solver.eigenvectors().rowwise().reverse();
}

}  // namespace headflow
