#pragma once

// What a task of a sweep can measure. Each measure gives quantities; the sweep puts those of all
// tasks together.

#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "study/config.h"
#include "study/dataset.h"

namespace headflow {

/// Measures by name:
///   end         where training ends (E^infinity), by end.search: fixed_point.h, or the flow until
///               its gradient is below end.gradient; loss, point, index
///   bayes       the Bayes risk
///   flow        the trajectory of the flow at its output times
///   sgd         a run of SGD, and the flow from its very start at the same times
///   phases      tau_s, excursions and signs along the eigenvectors of Cov theta, of the trajectory
///   pruning     losses after greedily removing 0, 1, ... heads from the end
///   similarity  cosines between heads at the end
///   attention   attention maps of five sequences at the end
/// Nothing if stopped.
std::optional<Dataset> measure_task(const Config& config, const std::vector<std::string>& measures,
                                    const Context& context);

}  // namespace headflow
