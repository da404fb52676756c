#include "study/settings.h"

namespace headflow {

Problem noted_problem(const ProblemOptions& options, const Context& context) {
  Problem out(options);
  for (const std::string& note : out.notes()) context.note(note);
  return out;
}

void set_engine(Dataset& out, const Engine& engine) {
  out.set("engine", std::string(engine.name()));
  if (!engine.reason().empty()) out.set("engine_reason", engine.reason());
  if (!engine.sampled()) out.set("engine_tolerance", engine.tolerance());
  out.set("engine_samples", std::int64_t{engine.samples()});
  out.set("engine_sampled", engine.sampled());
  out.set("error_kind", std::string(to_string(engine.error_kind())));
}

FixedPointOptions fixed_point_options(const Config& config) {
  FixedPointOptions out;
  out.gradient = config.end.gradient;
  out.rtol = config.flow.rtol;
  out.atol = config.flow.atol;
  return out;
}

}  // namespace headflow
