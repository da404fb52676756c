#pragma once

// What is known of the measures before any of them has run.

#include <string>
#include <vector>

#include "study/config.h"

namespace headflow {

bool is_measure(const std::string& name);
std::string measure_names();  ///< "end, bayes, ..."

/// True if the measure starts a flow: flow.init and [point] count.
bool trains(const std::string& measure);

/// Why a key ("flow.time") does not matter to these measures; empty if it does. `newton`: the end
/// of training is searched for by end.search = "newton".
std::string why_unused(const std::string& key, const std::vector<std::string>& measures,
                       bool newton);

/// Throws Error if measures are named twice, or give quantities of the same name.
void check_measures(const std::vector<std::string>& measures);

/// Variables and dimensions that a result with these measures has besides the axes.
std::vector<std::string> names_in_result(const std::vector<std::string>& measures);

/// How many numbers a task gives, about.
double numbers_of(const Config& configuration, const std::vector<std::string>& measures);

/// How long a task takes on one core, roughly: the paper's figures within a factor of 2.3 each, and
/// all of them together within a few per cent.
double expected_seconds(const Config& configuration, const std::vector<std::string>& measures);

/// Throws Error if a task cannot be computed as it is configured; computes nothing. `point_is_set`:
/// an axis or a flag sets [point], which must then be where something starts.
void check_task(const Config& config, const std::vector<std::string>& measures, bool point_is_set);

/// Sequences of the measure attention.
inline constexpr int kAttentionSequences = 5;

}  // namespace headflow
