#pragma once

// The constants of theory/specialisation.h, measured: fourth-order differences of the loss, as
// second differences, in the size of the learnt feature, of the exact Hessian in the new one.

#include "expectation/engine.h"
#include "theory/specialisation.h"

namespace headflow {

struct MeasuredGrowth {
  Matrix second_order;  ///< of d^2 E / da da in u, projected on a orthogonal to 1_H
  SpecialisationConstants c;
  double error = 0;  ///< of each entry of second_order: from the last extrapolation
  SpecialisationConstants c_error{};
  double misfit = 0;  ///< largest entry of second_order that the three constants leave
};

/// The learnt feature is 0, the new one is 1; u is orthogonal to 1_H, of size about 1, with squares
/// that differ. Engine: factorised, as exact as possible.
MeasuredGrowth measure_growth(Engine& engine, const Vector& u);

/// The Hessian in m_:1 at m_:0 = u, R = 0.
Matrix growth_block(Engine& engine, const Vector& u);

}  // namespace headflow
