#include "expectation/check_engine.h"

#include "core/error.h"
#include "core/tolerance.h"
#include "expectation/factorised/factorised.h"
#include "expectation/sampled_sums.h"

namespace headflow {

void check_engine(const Problem& problem, const EngineOptions& options) {
  check_tolerance(options.tolerance);
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
