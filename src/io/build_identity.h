#pragma once

#include <string>

namespace headflow {

/// Version and commit; if there are uncommitted changes, also a hash of the program itself: two
/// such builds are not the same program.
std::string build_identity();

}  // namespace headflow
