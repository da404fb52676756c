#pragma once

// When and how heads specialise along a recorded run.

#include <span>
#include <string>
#include <vector>

#include "dynamics/flow.h"

namespace headflow {

/// The first time at which `values` reach `level`, interpolated in the logarithm of the values
/// (which grow exponentially from a saddle); NaN if they never do.
double first_crossing(std::span<const double> times, std::span<const double> values, double level);

/// Spread of the heads along a direction s of features: the root mean square over heads of
/// m_h . s minus its mean.
double head_spread(const Point& point, const Vector& s);

/// The time tau_s of each direction (columns of `directions`): its head_spread first reaches half
/// of its largest value along the run. NaN for a direction whose spread stays below `least`.
std::vector<double> specialisation_times(const Trajectory& run, const Matrix& directions,
                                         double least = 0.1);

/// The time tau_u: the mean of the heads' overlaps with E theta first reaches half of its largest
/// value along the run. NaN if E theta = 0.
double mean_growth_time(const Trajectory& run, const Vector& mean_theta);

/// The sign of m_h . s of each head along each direction: +1, -1, or 0 if it is below `share` of
/// the largest of all heads along that direction.
std::vector<std::vector<int>> sign_patterns(const Point& point, const Matrix& directions,
                                            double share = 0.2);

/// Times that a head, once it has taken a side of direction s (|m_h . s| beyond `level`), goes to
/// the other side: the excursions by which uneven splits are repaired.
int excursions(const Trajectory& run, const Vector& s, double level);

/// Eigenvectors of Cov theta as columns, the largest variance first.
Matrix principal_directions(const Problem& problem);

}  // namespace headflow
