#include "sgd/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace headflow {

SgdMemory sgd_memory(const Problem& problem, const SgdOptions& options, int workers) {
  const double H = problem.H(), F = problem.F(), L = problem.L();
  const double D = static_cast<double>(options.dim), runs = options.runs;
  SgdMemory out;
  if (options.method == SgdAlgorithm::direct) {
    // k, its next value, its copies for a restart and for the record, k*; what runs at once.
    out.run = 8 * (D + 8) * (5 * H + 2 * F + std::min(16, workers) * (H + L));
  } else {
    const double columns = F + 3 * H + 16;
    const double block = 64 * (H * columns + 2 * H * H),
                 blocks = 1 + static_cast<double>(options.batch) / 64;
    out.run = std::min(blocks * block, std::max(double{1 << 25}, 2 * workers * block)) + block +
              workers * 64 * (L * (columns + H + 2) + 16 * H * H + 512);
  }
  const double record = 8 * (F * F + H * F + H * H + H) + 256;
  out.records = 4 * runs * (options.outputs + 1.0) * record;
  return out;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e9) return fmt::format("{:.3g} MB", bytes / 1e6);
  if (bytes < 1e13) return fmt::format("{:.3g} GB", bytes / 1e9);
  return fmt::format("{:.2g} TB", bytes / 1e12);
}

}  // namespace headflow
