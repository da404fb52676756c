#pragma once

// How a plan of a sweep is made, and what it has to keep to, whoever writes it: a file
// (sweep/sweep_file.h), Python's keywords, a form. What is wrong is an Error that says what would
// be right, without a place: whoever knows one puts it in front.

#include <optional>
#include <string>
#include <vector>

#include "study/keys.h"
#include "study/sweep_plan.h"

namespace headflow {

/// The key that an axis names: "problem.heads", or "problem.nu[2]" for one number of a list.
/// Throws Error, with the key that may have been meant.
const Key& key_of_axis(const std::string& name);

/// An axis of keys that vary together, over points: lists of values, one a key. Without a name it
/// has that of its first key, nu2 for problem.nu[2]; without labels these are its values. Throws
/// Error: for keys that there are not, or that no measure heeds, and points that are none or not of
/// that many values.
SweepAxis make_axis(const std::optional<std::string>& name, std::vector<std::string> keys,
                    std::vector<std::vector<Value>> points, std::vector<std::string> labels = {});
/// The same of one key.
SweepAxis make_axis(const std::string& key, const std::vector<Value>& values);

/// What is measured, and what the axes keep to together: names that a result can have, no key set
/// twice, not too many tasks.
void check_axes(const SweepPlan& plan);

/// A key that was given for all tasks (it is in `base`) must not be lost behind an axis. Whoever
/// was given one of [point] also sets plan.point_is_given, so that tasks are asked to start there.
void check_given(const SweepPlan& plan, const Config& base, const GivenFlags& given);

/// An axis, or a key that was given, must change something that is measured.
void check_use(const SweepPlan& plan, const Config& base, const GivenFlags& given);

/// All three. Values and the configurations they make are looked at with the tasks
/// (sweep_tasks.h).
void check_plan(const SweepPlan& plan, const Config& base, const GivenFlags& given = {});

/// Throws Error if an axis cannot have that name in a result with these measures.
void check_axis_name(const std::string& name, const Measures& measures);

}  // namespace headflow
