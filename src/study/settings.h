#pragma once

// What the computations of compute.h have in common.

#include <chrono>

#include "analysis/excess_risk.h"
#include "analysis/fixed_point.h"
#include "core/context.h"
#include "expectation/engine.h"
#include "study/config.h"
#include "study/dataset.h"

namespace headflow {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The problem; remarks on its options go to the observer.
Problem noted_problem(const ProblemOptions& options, const Context& context);

/// Attributes that say how expectations were computed: engine, engine_reason, engine_samples,
/// engine_tolerance, error_kind.
void set_engine(Dataset& out, const Engine& engine);

/// The excess risk at a point, by [loss] and [run]; a remark if its error is a guess.
ExcessRisk noted_excess_risk(const Config& config, const Problem& problem, const Point& point,
                             const Context& context);
void add_excess_risk(Dataset& out, const ExcessRisk& found);

/// The search for the end of training, by [end] and the steps of [flow].
FixedPointOptions fixed_point_options(const Config& config);

}  // namespace headflow
