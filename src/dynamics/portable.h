#pragma once

// Integrators that need headers only: what make_explicit and make_implicit are where there is no
// SUNDIALS (portable.cc). They are always compiled, and tested beside it.

#include "dynamics/integrator.h"

namespace headflow {

/// Dormand and Prince's explicit method, of Boost.Odeint: order 5(4), dense output of order 4.
std::unique_ptr<Integrator> make_dormand_prince(const Field& field, const Vector& y0,
                                                double relative, double absolute);

/// Implicit backward differences of order 1 to 5 with steps that stay equal for a while: the NDF
/// of Shampine and Reichelt, The MATLAB ODE Suite, SIAM J. Sci. Comput. 18 (1997), with CVODE's
/// test of Newton's iteration. The Jacobian is kept until that fails: about as many evaluations as
/// CVODE takes, where Odeint's Rosenbrock method, which wants a Jacobian a step, takes up to 25
/// times as many (and its linear algebra is no C++20).
std::unique_ptr<Integrator> make_bdf(const Field& field, const Vector& y0, double relative,
                                     double absolute, const Context& context = {},
                                     const FieldSlopes& slopes = {});

}  // namespace headflow
