#pragma once

// The statements of the paper as one computation: a Config in, a Dataset out, as those of
// study/compute.h.

#include <memory>

#include "core/context.h"
#include "study/config.h"
#include "study/dataset.h"
#include "study/known_tasks.h"
#include "verify/claim.h"

namespace headflow {

/// The statements of the paper that [verify] names, measured, one row each; fewer if stopped. What
/// figures have computed, too, is taken from `known`: the numbers are the same.
Dataset compute_verify(const Config& config, const Context& context = {},
                       const std::shared_ptr<const KnownTasks>& known = nullptr);
/// The same of statements that were measured already, of any claims; without provenance.
Dataset statements_dataset(const Measurements& measured, Effort effort, double seconds);

}  // namespace headflow
