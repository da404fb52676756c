#pragma once

// Tasks that statements are measured with and that figures compute, too: the same configurations as
// in configs/paper/, so that they can be taken from there (study/known_tasks.h).

#include "study/measures.h"
#include "verify/setting.h"

namespace headflow {

/// Figure 7: a network with spare heads trained to its end, and pruned.
inline Config pruning_task(const ProblemOptions& problem, std::uint64_t seed) {
  Config out;
  out.problem = problem;
  out.run.tolerance = 1e-4;
  out.run.seed = seed;
  out.flow.integrator = Scheme::implicit;
  out.flow.rtol = 1e-4;
  out.flow.atol = 1e-6;
  // Spare heads of B-softmax fade for ever where there is nothing left to learn.
  out.end.gradient = problem.prior == "flipping" ? 1e-4 : 1e-5;
  out.loss.excess = 20'000;
  return out;
}
inline Measures pruning_measures() { return {Measure::end, Measure::pruning}; }

/// Figure 19: three features learnt one after the other.
inline Config stages_task(const ProblemOptions& problem, std::uint64_t seed) {
  Config out;
  out.problem = problem;
  out.run.engine = EngineName::factorised;
  out.run.tolerance = 1e-5;
  out.run.seed = seed;
  out.flow.integrator = Scheme::implicit;
  out.flow.rtol = 1e-4;
  out.flow.atol = 1e-6;
  out.flow.time = 6e4;
  out.flow.spacing = Spacing::log;
  out.flow.first_output = 0.1;
  out.flow.outputs = 200;
  return out;
}
inline Measures stages_measures() { return {Measure::flow, Measure::phases}; }

}  // namespace headflow
