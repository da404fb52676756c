#pragma once

// What a task of a sweep can measure, and what is known of it before anything has run.

#include <string>
#include <vector>

#include "core/names.h"
#include "study/config.h"

namespace headflow {

enum class Measure {
  end,      ///< where training ends (E^infinity), by end.search: fixed_point.h, or the flow until
            ///< its gradient is below end.gradient; loss, point, index; with
            ///< loss.excess the excess risk
  bayes,    ///< the Bayes risk
  flow,     ///< the trajectory of the flow at its output times
  sgd,      ///< a run of SGD, and its limits from its very start at the same times
  phases,   ///< tau_s, excursions and signs along the eigenvectors of Cov theta, of the trajectory
  pruning,  ///< losses after greedily removing 0, 1, ... heads from the end
  similarity,  ///< cosines between heads at the end
  attention,   ///< attention maps of five sequences at the end
};
template <>
inline constexpr Named<Measure> kNames<Measure>[] = {{Measure::end, "end"},
                                                     {Measure::bayes, "bayes"},
                                                     {Measure::flow, "flow"},
                                                     {Measure::sgd, "sgd"},
                                                     {Measure::phases, "phases"},
                                                     {Measure::pruning, "pruning"},
                                                     {Measure::similarity, "similarity"},
                                                     {Measure::attention, "attention"}};
using Measures = std::vector<Measure>;

/// What a measure is taken of.
enum class Source { model, flow, end, sgd };
Source source_of(Measure measure);

/// True if the measure starts a flow: flow.init and [point] count.
bool trains(Measure measure);

/// True if its numbers stand where training diverged: those on the way do, those of an end do not.
bool survives_divergence(Measure measure);

/// Why a key ("flow.time") does not matter to these measures; empty if it does. `newton`: the end
/// of training is searched for by end.search = "newton".
std::string why_unused(const std::string& key, const Measures& measures, bool newton);

/// Throws Error if measures are named twice, or give quantities of the same name.
void check_measures(const Measures& measures);

/// Variables and dimensions that a result with these measures has besides the axes.
std::vector<std::string> names_in_result(const Measures& measures);

/// How many numbers a task gives, about.
double numbers_of(const Config& configuration, const Measures& measures);

/// How long a task takes on one core, roughly: the paper's figures within a factor of 2.3 each, and
/// all of them together within a few per cent.
double expected_seconds(const Config& configuration, const Measures& measures);

/// Throws Error if a task cannot be computed as it is configured; computes nothing. `point_is_set`:
/// an axis or a flag sets [point], which must then be where something starts.
void check_task(const Config& config, const Measures& measures, bool point_is_set);

/// Sequences of the measure attention.
inline constexpr int kAttentionSequences = 5;

}  // namespace headflow
