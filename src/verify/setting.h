#pragma once

// Short ways to say in which setting a statement is measured.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "expectation/engine.h"
#include "verify/claim.h"

namespace headflow {

inline constexpr const char* kActivations[] = {"softmax", "softmax-1", "b-softmax"};

inline Matrix row_of(std::initializer_list<double> values) {
  Matrix out(1, static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), out.data());
  return out;
}

inline ProblemOptions setting(const std::string& activation, const std::string& prior, int L, int H,
                              int F, std::initializer_list<double> nu, double eta = 1) {
  ProblemOptions options;
  options.activation = activation;
  options.prior = prior;
  options.tokens = L;
  options.heads = H;
  options.features = F;
  options.eta = eta;
  if (nu.size() > 0) options.prior_parameters["nu"] = row_of(nu);
  return options;
}

/// "softmax, flipping, L 4, H 2, F 2".
inline std::string text(const ProblemOptions& options) {
  std::string out = fmt::format("{}, {}, L {}, H {}, F {}", options.activation, options.prior,
                                options.tokens, options.heads, options.features);
  const auto nu = options.prior_parameters.find("nu");
  if (nu == options.prior_parameters.end()) return out;
  for (Eigen::Index i = 0; i < nu->second.size(); ++i) {
    out += fmt::format("{}{}", i ? "/" : ", nu ", nu->second.data()[i]);
  }
  return out;
}

/// Sets a block, if the activation has it.
inline void set_block(Point& point, std::string_view name, double value) {
  if (point.blocks.has(name)) point[name].setConstant(value);
}

/// The biases, or zeros if the activation has none.
inline Vector biases(const Point& point) {
  return point.blocks.has("b") ? Vector(point["b"]) : Vector(Vector::Zero(point.heads()));
}

/// m = 0, R = 0, and the blocks where training starts.
inline Point at_rest(const Problem& problem) {
  Point out = problem.start_point();
  out.R.setZero();
  return out;
}

/// Claims run side by side, so that each engine takes one core.
inline EngineOptions on_one_core(double tolerance) {
  EngineOptions options;
  options.tolerance = tolerance;
  return options;
}

/// Monte Carlo with independent samples for each number `replica`.
inline std::unique_ptr<Engine> samples(const Problem& problem, std::int64_t count,
                                       std::uint64_t replica, const Context& context) {
  EngineOptions options = on_one_core(1e-3);
  options.engine = EngineName::mc;
  options.samples = count;
  options.seed = 1000 + replica;
  return make_engine(problem, options, {}, context);
}

/// The number for the effort that is made.
template <class T>
T by(Effort effort, T quick, T full) {
  return effort == Effort::quick ? quick : full;
}

inline std::unique_ptr<Engine> quadrature(const Problem& problem, double tolerance,
                                          const Context& context) {
  EngineOptions options = on_one_core(tolerance);
  options.engine = EngineName::factorised;
  return make_engine(problem, options, {}, context);
}

}  // namespace headflow
