#pragma once

#include "expectation/engine.h"
#include "sgd/sgd.h"

namespace headflow {

/// Losses in the limit of large D of recorded states, [run][output]; empty if they are not known.
struct PopulationLoss {
  std::vector<std::vector<double>> loss, error;
  std::string engine;
  ErrorKind error_kind = ErrorKind::refinement;
};

/// With the exact p of each run; the problem is without overlaps p. Nothing if stopped.
PopulationLoss population_loss(const Problem& problem, const EngineOptions& engine,
                               const std::vector<std::vector<SgdRecord>>& recorded,
                               const Context& context = {});

}  // namespace headflow
