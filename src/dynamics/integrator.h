#pragma once

// Integrators of dy/dtau = f(y), one internal step at a time, with dense output: asking for
// the state between steps never changes the steps.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/context.h"
#include "core/matrix.h"
#include "model/problem.h"

namespace headflow {

/// Writes f(y); returns false if it is not finite.
using Field = std::function<bool(const double* y, double* velocity)>;
/// Writes df/dy, one column after the other; returns false if it is not finite.
using FieldSlopes = std::function<bool(const double* y, double* columns)>;

class Integrator {
 public:
  virtual ~Integrator() = default;

  /// One internal step. False if it failed (why() says how); the state stays at the last good step.
  virtual bool advance() = 0;
  virtual std::string why() const = 0;
  /// Of the method; the highest, if it varies.
  virtual int order() const = 0;

  virtual double time() const = 0;
  /// State at a time within the last step.
  virtual void state(double time, double* y) const = 0;
  /// Norm of dy/dtau about the last step, without a new evaluation. A hint: verify before use.
  virtual double speed() const = 0;
};

/// The explicit Euler method with a fixed step; order 1. Between steps the state is linear.
/// before_step(k) is called before the k-th evaluation (to redraw samples).
std::unique_ptr<Integrator> make_euler(const Field& field, const Vector& y0, double step,
                                       const std::function<void(std::int64_t)>& before_step);

/// Adaptive explicit Runge-Kutta, local error within the tolerances: order 4(3) (ARKODE of
/// SUNDIALS); without that, 5(4) (portable.h).
std::unique_ptr<Integrator> make_explicit(const Field& field, const Vector& y0, double relative,
                                          double absolute);

/// Adaptive implicit BDF of order 1 to 5 (CVODE of SUNDIALS, or portable.h), Newton with a dense
/// Jacobian, by `slopes` or, without, by differences: for runs to stationarity, where the time
/// scales are far apart. At most kMostUnknowns of them. `advance` throws Interrupted if the context
/// says so.
std::unique_ptr<Integrator> make_implicit(const Field& field, const Vector& y0, double relative,
                                          double absolute, const Context& context = {},
                                          const FieldSlopes& slopes = {});

/// Of a dense Jacobian or Hessian: 128 MB, and minutes to decompose it.
inline constexpr Eigen::Index kMostUnknowns = 4096;
/// Throws Error, with the reason, if a point of this problem has more.
void check_unknowns(const Problem& problem, const std::string& why);

}  // namespace headflow
