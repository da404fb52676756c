#pragma once

#include <random>
#include <string>

#include "expectation/monte_carlo.h"
#include "model/problem.h"

namespace headflow::testing {

inline Matrix row(std::initializer_list<double> values) {
  Matrix out(1, static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), out.data());
  return out;
}

/// Uniform in [-1, 1], a function of its shape and number.
inline Matrix random_matrix(int rows, int columns, unsigned number) {
  std::mt19937_64 generator(1000003u * static_cast<unsigned>(rows) +
                            1009u * static_cast<unsigned>(columns) + number);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Matrix out(rows, columns);
  for (double& x : out.reshaped()) x = uniform(generator);
  return out;
}

/// b and v of a point or a state of SGD; where there are none, what the paper's formulas then have.
template <class State>
Vector b_of(const State& state) {
  return state.blocks.has("b") ? Vector(state.blocks["b"]) : Vector::Zero(state.heads());
}
template <class State>
double v_of(const State& state) {
  return state.blocks.has("v") ? state.blocks["v"][0] : 1.0;
}

/// Sets a block, if the activation has it.
inline void set_block(Point& point, std::string_view name, double value) {
  if (point.blocks.has(name)) point[name].setConstant(value);
}

/// A problem of the given shape; prior "full" is a Gaussian with mean and full covariance.
inline ProblemOptions problem_options(const std::string& activation, const std::string& prior,
                                      int L, int H, int F) {
  ProblemOptions options;
  options.activation = activation;
  options.tokens = L;
  options.heads = H;
  options.features = F;
  options.prior = prior == "full" ? "gaussian" : prior;
  if (prior == "discrete") {
    options.prior_parameters["points"] = random_matrix(3, F, 1) * 2.0;
    options.prior_parameters["weights"] = row({0.2, 0.3, 0.5});
  } else if (prior == "full") {
    const Matrix A = random_matrix(F, F, 2);
    options.prior_parameters["covariance"] = A * A.transpose();
    options.prior_parameters["mean"] = random_matrix(1, F, 3);
  } else if (prior == "mixture") {  // two Gaussians and an atom
    Matrix covariances = Matrix::Zero(3 * F, F);
    for (int k = 0; k < 2; ++k) {
      const Matrix A = random_matrix(F, F, 4 + 10 * static_cast<unsigned>(k));
      covariances.middleRows(k * F, F) = A * A.transpose();
    }
    options.prior_parameters["means"] = random_matrix(3, F, 5) * 2.0;
    options.prior_parameters["covariances"] = covariances;
    options.prior_parameters["weights"] = row({0.2, 0.3, 0.5});
  } else {
    options.prior_parameters["nu"] = row({2.0});
  }
  return options;
}

inline Point random_point(const Problem& problem, unsigned seed, double scale = 1.0) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Point point = problem.zero_point();
  for (double& x : point.m.reshaped()) x = scale * normal(generator);
  for (double& x : point.R.reshaped()) x = 0.3 * scale * normal(generator);
  point.R.diagonal().array() += 0.7 * scale;
  for (const BlockLayout::Entry& e : point.blocks.entries()) {
    for (double& x : point.blocks[e.info.name]) {
      x = e.per_head() ? normal(generator) : 1.0 + 0.3 * normal(generator);
    }
  }
  return point;
}

inline EngineOptions engine_options(std::int64_t samples, std::uint64_t seed) {
  EngineOptions options;
  options.samples = samples;
  options.seed = seed;
  return options;
}

inline Vector flatten(const Point& point) {
  Vector out(point.size());
  point.pack(out.data());
  return out;
}

}  // namespace headflow::testing
