#pragma once

// For whoever brings an activation, a prior or an engine: is the gradient that of the loss?

#include "expectation/engine.h"

namespace headflow {

struct GradientCheck {
  double difference = 0;  ///< largest, between an entry of the gradient and differences of the loss
  double largest = 0;     ///< entry of the gradient
  double relative() const { return difference / largest; }
};

/// Central differences of fourth order of the loss, along every coordinate, with the nodes or
/// samples of `evaluate` at the point: good to about 1e-9 of the loss. Cost: four evaluations for
/// each coordinate.
GradientCheck check_gradient(Engine& engine, const Point& point);

}  // namespace headflow
