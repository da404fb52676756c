#include "expectation/check_engine.h"

#include "core/error.h"
#include "expectation/factorised/factorised.h"
#include "expectation/sampled_sums.h"

namespace headflow {

void check_engine(const Problem& problem, const EngineOptions& options) {
  if (!(options.tolerance >= 1e-12 && options.tolerance <= 0.1)) {
    throw OptionError("run.tolerance", fmt::format("{:g}", options.tolerance),
                      "must be from 1e-12 to 0.1");
  }
  checked_samples(options);
  checked_randomisations(options);
  check_memory(options);
  const std::string why_not = Factorised::why_not(problem);
  if (options.engine == EngineName::factorised && !why_not.empty()) {
    throw OptionError("run.engine", "\"factorised\"",
                      fmt::format("cannot be used: {}; use \"qmc\" or \"mc\"", why_not));
  }
}

}  // namespace headflow
