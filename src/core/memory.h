#pragma once

namespace headflow {

/// Bytes that this process may have: the machine's, or those of its control group. Infinity where
/// neither is known.
double machine_memory();

}  // namespace headflow
