#pragma once

#include "core/names.h"

namespace headflow {

/// Of output times.
enum class Spacing { linear, log };
template <>
inline constexpr Named<Spacing> kNames<Spacing>[] = {{Spacing::linear, "linear"},
                                                     {Spacing::log, "log"}};

}  // namespace headflow
