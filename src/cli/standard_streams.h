#pragma once

namespace headflow {

/// Call it first. Remarks and progress on standard error are then dropped where they cannot be
/// written (a full disk, a reader that is gone), so that they never cost a result; and files that
/// are opened later never take the place of a standard stream that was closed. What cannot be
/// written to standard output stays an error.
void protect_standard_streams();

}  // namespace headflow
