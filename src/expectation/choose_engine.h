#pragma once

#include "expectation/engine.h"

namespace headflow {

/// The cheapest engine that meets options.tolerance at a point; if none does, the one that comes
/// closest. Costs are estimated from numbers of operations, not from clocks, so the choice is
/// reproducible.
///
/// run.samples, if given, asks for sampling: Monte Carlo is taken. Otherwise the factorised engine
/// reports its own error, and those of the sampled engines are extrapolated from a small trial
/// with their convergence rates, N^(-1/2) and (cautiously) N^(-0.6); two
/// standard errors are held against the tolerance.
std::unique_ptr<Engine> choose_engine(const Problem& problem, const EngineOptions& options,
                                      const EngineUse& use, const Context& context);

}  // namespace headflow
