#pragma once

// The Hessian at a point with its error, its eigenvalues grouped by eigenspaces, and closed forms
// beside them where they are known: what `hessian.h` gives, made ready to be read.

#include <optional>

#include "analysis/hessian.h"
#include "theory/origin.h"

namespace headflow {

struct Eigenspace {
  double eigenvalue = 0;
  int multiplicity = 1;
  ModeShape shape;                    ///< of the whole space
  std::optional<double> closed_form;  ///< the nearest one of the same kind
};

/// Equal eigenvalues together: those that differ by no more than twice their error, or by 1e-9 of
/// their size.
std::vector<Eigenspace> eigenspaces(const Hessian& h, double error,
                                    const std::vector<OriginMode>& closed_forms = {});

struct Spectrum {
  Hessian h;
  double loss = 0, gradient_norm = 0;  ///< at the point
  double error = 0;                    ///< of an entry of the Hessian
  ErrorKind error_kind = ErrorKind::refinement;
  std::vector<Eigenspace> spaces;
  bool at_origin = false;  ///< where closed forms are known
  std::string engine;

  /// At which differences grow: minus the smallest eigenvalue, or 0.
  double escape_rate() const;
  /// Until differences of order D^(-1/2) are of order one; infinite if the rate is not known to be
  /// above 0 (by ten errors).
  double parting_time(double D) const;
};

/// The error is what a rule that is a hundred times finer changes, or what other samples do. Throws
/// Error if something is not finite, or there are too many unknowns.
Spectrum spectrum(const Problem& problem, EngineOptions engine, const Point& point,
                  const Context& context = {});

/// Names of the coordinates of a Hessian: "m[1,2]", "R[2,2]", "b[1]".
std::vector<std::string> coordinate_names(const Hessian& h);

}  // namespace headflow
