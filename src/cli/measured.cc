#include "cli/measured.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/show.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"
#include "io/atomic_file.h"
#include "study/measure_info.h"
#include "study/measures.h"
#include "study/settings.h"

namespace headflow::cli {

int show_measures(Invocation& call, const Measures& measures, void (*print)(const Dataset&)) {
  Config& config = call.config;
  for (const Key& key : keys()) {
    const std::string name = key.full_name();
    if (!call.origins.flag(name)) continue;
    const std::string why = why_unused(name, measures, config.end.search != EndSearch::flow);
    if (!why.empty()) throw Error(fmt::format("{} changes nothing: {}", key.flag(), why));
  }
  if (!config.result.output.empty()) check_writable(config.result.output);
  config.flow.check();
  settle_start(call);
  config.end.check();
  std::optional<Dataset> measured;
  {
    const Watched context(call, std::string(to_string(measures.back())));
    check_engine(noted_problem(config.problem, context), config.run);
    measured = measure_task(config, measures, context);
  }
  if (!measured) throw Interrupted();
  const bool diverged = measured->number("diverged") == 1.0;
  put_out(call, *measured);
  if (!call.json && !diverged) print(*measured);
  if (!diverged) return kSuccess;
  fmt::print(stderr, "headflow: training diverged: take a smaller flow.step\n");
  return kDiverged;
}

void print_end(const Dataset& all) {
  fmt::print("training ends at tau = {:.4g} with gradient {:.2g}; loss {:.6f} +- {:.2g}\n",
             all.number("end_time"), all.number("gradient_norm"), all.number("loss"),
             all.error("loss"));
}

}  // namespace headflow::cli
