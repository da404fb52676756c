#pragma once

// Engines: a problem and a point in; loss, gradient and their errors out.
//
//   E(m, R, b, v) = E[ sum_l ( delta_{l,eps} - (1/H) sum_h sigma(chi, b, v; h)_l )^2 ]
//   chi_hl = sum_f m_hf chi*_fl + sum_h' R_hh' xi_h'l,  chi*_l ~ N(delta_{l,eps} theta, I_F)
//
// Every engine evaluates this same function; they differ in how, and in what their error
// means. Between two calls of refresh() an engine is a smooth deterministic function.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/problem.h"

namespace headflow {

/// What the errors that an engine reports are.
enum class ErrorKind {
  standard_error,  ///< one standard deviation of the estimate over independent samples
};
std::string_view to_string(ErrorKind kind);

struct EngineOptions {
  std::string engine = "mc";          ///< which engine: mc
  std::int64_t samples = 100'000;     ///< Monte-Carlo samples
  std::uint64_t seed = 1;             ///< seed of every random number
  std::string precision = "float64";  ///< storage of the samples: float64 or float32
  std::int64_t memory = 2048;         ///< MiB of samples to keep; beyond, they are made anew
  int threads = 0;                    ///< threads, 0 for all cores; never changes a result
};

/// What to compute beyond the loss, its error and the gradient.
struct Request {
  bool gradient_error = false;
  bool second_moment = false;  ///< E[sum_l g_hl g_h'l] with g = d loss / d chi
};

struct Evaluation {
  double loss = 0;
  double loss_error = 0;
  Point grad;
  Point grad_error;      ///< if requested
  Matrix second_moment;  ///< if requested
};

class Engine {
 public:
  explicit Engine(Problem problem) : problem_(std::move(problem)) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Problem& problem() const { return problem_; }
  virtual std::string_view name() const = 0;
  virtual ErrorKind error_kind() const = 0;
  /// Samples or nodes of one evaluation.
  virtual std::int64_t samples() const = 0;

  /// Not thread-safe: an engine has scratch space of its own.
  virtual void evaluate(const Point& point, const Request& request, Evaluation& out) = 0;

  /// Replaces the samples by the independent set number `draw` (0 is the first one).
  virtual void refresh(std::uint32_t draw) = 0;

 private:
  Problem problem_;
};

/// Throws OptionError for an unknown engine or a bad option.
std::unique_ptr<Engine> make_engine(const Problem& problem, const EngineOptions& options);

}  // namespace headflow
