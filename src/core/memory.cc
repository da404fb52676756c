#include "core/memory.h"

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>

namespace headflow {

double machine_memory() {
  double out = std::numeric_limits<double>::infinity();
#ifdef _SC_PHYS_PAGES
  const auto pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  if (pages > 0) out = pages * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
#endif
  double group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group && group > 0) out = std::min(out, group);
  return out;
}

}  // namespace headflow
