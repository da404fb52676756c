#include "expectation/check_engine.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "core/suggest.h"
#include "expectation/factorised/factorised.h"
#include "expectation/sampled_sums.h"

namespace headflow {

void check_engine(const Problem& problem, const EngineOptions& options) {
  std::vector<std::string> names = engine_names();
  names.insert(names.begin(), "auto");
  if (std::ranges::count(names, options.engine) == 0) {
    throw OptionError("run.engine", in_quotes(options.engine), one_of(names, options.engine));
  }
  if (!(options.tolerance >= 1e-12 && options.tolerance <= 0.1)) {
    throw OptionError("run.tolerance", fmt::format("{:g}", options.tolerance),
                      "must be from 1e-12 to 0.1");
  }
  checked_threads(options.threads);
  checked_samples(options);
  checked_randomisations(options);
  checked_single_precision(options);
  check_memory(options);
  const std::string why_not = Factorised::why_not(problem);
  if (options.engine == "factorised" && !why_not.empty()) {
    throw OptionError("run.engine", "\"factorised\"",
                      fmt::format("cannot be used: {}; use \"qmc\" or \"mc\"", why_not));
  }
}

}  // namespace headflow
