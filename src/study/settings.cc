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

ExcessRisk noted_excess_risk(const Config& config, const Problem& problem, const Point& point,
                             const Context& context) {
  EngineOptions options = config.run;
  options.samples = config.loss.excess;
  const ExcessRisk found = excess_risk(problem, point, options, context);
  if (found.carried_by_few()) {
    context.note(
        fmt::format("{:.0f} of {} points carry the excess risk: its error is a guess, and "
                    "rarer sequences are in neither; a larger loss.excess has more",
                    found.effective_points, found.points));
  }
  return found;
}

void add_excess_risk(Dataset& out, const ExcessRisk& found) {
  out.add("excess_risk", "excess risk: loss above the Bayes risk", found.risk)
      .with_errors({found.error}, found.error_kind);
}

FixedPointOptions fixed_point_options(const Config& config) {
  FixedPointOptions out;
  out.gradient = config.end.gradient;
  out.rtol = config.flow.rtol;
  out.atol = config.flow.atol;
  return out;
}

}  // namespace headflow
