#pragma once

#include "core/names.h"

namespace headflow {

/// How much is spent on a measurement: the same statements, with fewer runs, samples and starts.
enum class Effort { quick, full };
template <>
inline constexpr Named<Effort> kNames<Effort>[] = {{Effort::quick, "quick"},
                                                   {Effort::full, "full"}};

}  // namespace headflow
