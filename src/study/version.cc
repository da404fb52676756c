#include "study/version.h"

#include <commit.h>

namespace headflow {

std::string program_version() { return HEADFLOW_VERSION; }
std::string program_commit() { return HEADFLOW_COMMIT; }

}  // namespace headflow
