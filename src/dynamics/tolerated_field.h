#pragma once

// What integrators with steps of their own choice choose them by: a field that may fail, and the
// error that is tolerated.

#include <algorithm>
#include <cmath>
#include <utility>

#include "dynamics/integrator.h"

namespace headflow {

/// Steps that fail are made smaller, and may then creep along a wall without an end: true after a
/// hundred failures within which time grew by less than a millionth.
class Stall {
 public:
  bool failed_at(double time) {
    if (time > since_ * (1 + 1e-6)) {
      since_ = time;
      failures_ = 0;
    }
    return ++failures_ > 100;
  }

 private:
  double since_ = 0;
  int failures_ = 0;
};

class ToleratedField {
 public:
  ToleratedField(Field field, double relative, double absolute)
      : field_(std::move(field)), relative_(relative), absolute_(absolute) {}

  /// False if it is not finite.
  bool evaluate(const Vector& y, Vector& velocity) const {
    return field_(y.data(), velocity.data()) && velocity.allFinite();
  }

  /// Root mean square of x in units of what is tolerated about y.
  double norm(const Vector& x, const Vector& y) const {
    const auto scaled = x.array() / (absolute_ + relative_ * y.array().abs());
    return std::sqrt(scaled.square().mean());
  }

  /// A first step of a method of this order, at the velocity f(y): Hairer, Norsett, Wanner,
  /// Solving Ordinary Differential Equations I, II.4. Costs an evaluation; 0 if no step is finite.
  double first_step(const Vector& y, const Vector& velocity, int order) const {
    const double size = norm(y, y), speed = norm(velocity, y);
    double step = size < 1e-5 || speed < 1e-5 ? 1e-6 : 0.01 * size / speed;
    Vector ahead(y.size());
    while (!evaluate(y + step * velocity, ahead)) {
      step /= 4;
      if (!(step > 1e-300)) return 0;
    }
    const double most = std::max(speed, norm(ahead - velocity, y) / step);
    const double wanted =
        most < 1e-15 ? std::max(1e-6, 1e-3 * step) : std::pow(0.01 / most, 1.0 / (order + 1));
    return std::min(100 * step, wanted);
  }

 private:
  Field field_;
  double relative_, absolute_;
};

}  // namespace headflow
