#pragma once

namespace headflow {

/// N samples that all agree say nothing of what has a probability below kUnseen / N: what is that
/// likely is missed by all of them one time in twenty (e^-3).
inline constexpr double kUnseen = 3;

}  // namespace headflow
