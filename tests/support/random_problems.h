#pragma once

// Problems and points drawn at random over everything that an engine must be able to do.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "model/problem.h"

namespace headflow::testing {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}

  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator_);
  }
  double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  int integer(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator_);
  }
  double normal() { return normal_(generator_); }
  Matrix normals(Eigen::Index rows, Eigen::Index cols) {
    Matrix out(rows, cols);
    for (double& x : out.reshaped()) x = normal();
    return out;
  }
  /// Positive numbers that sum to one.
  Matrix weights(int count) {
    Matrix out(1, count);
    for (double& x : out.reshaped()) x = uniform(0.1, 1.0);
    return out / out.sum();
  }
  /// A covariance without structure, of variances about 1.
  Matrix covariance(int F) {
    const Matrix A = normals(F, F);
    return A * A.transpose() / F;
  }

 private:
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
};

inline constexpr const char* kAllActivations[] = {"softmax", "softmax-1", "b-softmax"};
/// Kinds of priors: the flipping spike; a Gaussian with one variance, with several, with mean and
/// full covariance; 1 to 6 atoms; 1 to 3 Gaussians or atoms.
inline constexpr const char* kAllPriors[] = {"flipping", "isotropic", "graded",
                                             "full",     "discrete",  "mixture"};

inline ProblemOptions random_options(const std::string& activation, const std::string& prior, int L,
                                     int H, int F, Draw& draw) {
  ProblemOptions options;
  options.activation = activation;
  options.prior = prior;
  options.tokens = L;
  options.heads = H;
  options.features = F;
  PriorParameters& p = options.prior_parameters;
  if (prior == "flipping") {
    p["nu"] = Matrix::Constant(1, 1, draw.uniform(0.2, 4.0));
    if (F == 2) {
      p["nu"] = Matrix(1, 2);
      p["nu"] << draw.uniform(0.2, 4.0), draw.uniform(0.2, 4.0);
    }
  } else if (prior == "isotropic" || prior == "graded") {
    options.prior = "gaussian";
    p["nu"] = Matrix::Constant(1, 1, draw.uniform(0.2, 4.0));
    if (prior == "graded") {
      p["nu"] = Matrix(1, 2);
      p["nu"] << draw.uniform(0.2, 4.0), draw.uniform(0.0, 1.0);
    }
  } else if (prior == "full") {
    options.prior = "gaussian";
    p["covariance"] = draw.covariance(F);
    p["mean"] = draw.normals(1, F);
  } else if (prior == "discrete") {
    const int atoms = draw.integer(1, 6);
    p["points"] = 1.5 * draw.normals(atoms, F);
    p["weights"] = draw.weights(atoms);
  } else {
    const int components = draw.integer(1, 3);
    Matrix covariances = Matrix::Zero(components * F, F);
    for (int k = 0; k < components; ++k) {
      if (draw.uniform(0, 1) < 0.6) covariances.middleRows(k * F, F) = draw.covariance(F);
    }
    p["means"] = draw.normals(components, F);
    p["covariances"] = covariances;
    p["weights"] = draw.weights(components);
  }
  return options;
}

/// Heads of norm about `size`, with orthogonal parts of norm up to about `orthogonal`.
inline Point random_heads(const Problem& problem, double size, double orthogonal, Draw& draw) {
  const int H = problem.H(), F = problem.F();
  Point point = problem.zero_point();
  point.m = size / std::sqrt(F) * draw.normals(H, F);
  point.R = orthogonal / std::sqrt(H) * draw.normals(H, H);
  // Drawn whether or not the activation has them: what is drawn afterwards is the same for all.
  const Vector b = draw.normals(H, 1);
  const double v = draw.uniform(0.5, 1.5);
  for (const BlockLayout::Entry& e : point.blocks.entries()) {
    auto block = point.blocks[e.info.name];
    if (e.info.name == "b") {
      block = b;
    } else if (e.info.name == "v") {
      block.setConstant(v);
    } else {
      for (double& x : block) x = e.per_head() ? draw.normal() : draw.uniform(0.5, 1.5);
    }
  }
  return point;
}

}  // namespace headflow::testing
