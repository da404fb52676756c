#pragma once

#include <Eigen/Core>

namespace headflow {

/// Row-major, as in configuration files, result files and numpy.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

}  // namespace headflow
