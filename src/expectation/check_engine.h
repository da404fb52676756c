#pragma once

#include "expectation/engine.h"

namespace headflow {

/// Throws OptionError for what make_engine, or the engine it makes, would refuse; computes nothing.
void check_engine(const Problem& problem, const EngineOptions& options);

}  // namespace headflow
