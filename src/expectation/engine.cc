#include "expectation/engine.h"

#include "core/error.h"
#include "core/suggest.h"
#include "expectation/monte_carlo.h"

namespace headflow {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::standard_error: return "Monte-Carlo standard error";
  }
  return "unknown";
}

std::unique_ptr<Engine> make_engine(const Problem& problem, const EngineOptions& options) {
  if (options.engine == "mc") return std::make_unique<MonteCarlo>(problem, options);
  throw OptionError("run.engine", in_quotes(options.engine), one_of({"mc"}, options.engine));
}

}  // namespace headflow
