#pragma once

#include <string>

namespace headflow {

/// "0.1.0", and the commit the library was built from ("unknown" outside of a checkout).
std::string program_version();
std::string program_commit();

}  // namespace headflow
