#include "io/build_identity.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "core/checksum.h"
#include "study/version.h"

namespace headflow {

std::string build_identity() {
  static const std::string identity = [] {
    std::string out = fmt::format("{} {}", program_version(), program_commit());
    if (!program_commit().ends_with("-dirty") && program_commit() != "unknown") return out;
    std::ifstream program("/proc/self/exe", std::ios::binary);
    Checksum sum;
    std::vector<char> piece(1 << 20);
    while (program.read(piece.data(), std::ssize(piece)), program.gcount() > 0) {
      sum.add(piece.data(), static_cast<std::size_t>(program.gcount()));
    }
    return out + fmt::format(" {:016x}", sum.value());
  }();
  return identity;
}

}  // namespace headflow
