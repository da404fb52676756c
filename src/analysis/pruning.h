#pragma once

// Greedy pruning: heads are removed one by one, each time the one whose removal leaves the lowest
// loss. The output is rescaled by H / (heads left), and B-softmax is normalised over the heads
// left: what is left is the same model with fewer heads.

#include <vector>

#include "expectation/engine.h"

namespace headflow {

struct PruningStep {
  int removed = -1;            ///< number of the head in the full model; -1: none yet
  double loss = 0, error = 0;  ///< of the heads left
  ErrorKind error_kind = ErrorKind::refinement;
  std::vector<double> instead;  ///< losses had another head been removed, by head; NaN: not there
};

/// From all heads down to one.
std::vector<PruningStep> prune(const Problem& problem, const Point& point,
                               const EngineOptions& engine, const Context& context = {});

/// The point without some of its heads: R R^T is that of the heads kept.
Point with_heads(const Point& point, const std::vector<int>& kept);

}  // namespace headflow
