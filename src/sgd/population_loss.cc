#include "sgd/population_loss.h"

namespace headflow {
namespace {

PopulationLoss losses_of(const Problem& without_p, const EngineOptions& options,
                         const std::vector<std::vector<SgdRecord>>& recorded,
                         const Context& context) {
  PopulationLoss out;
  const double count = static_cast<double>(recorded.size() * recorded.front().size());
  double done = 0;
  for (const auto& run : recorded) {
    const Problem problem = without_p.with_overlaps(run.front().state.p());
    std::unique_ptr<Engine> engine;
    out.loss.emplace_back();
    out.error.emplace_back();
    for (const SgdRecord& record : run) {
      const Point point = problem.frame().enter(point_of(record.state));
      if (!engine) engine = make_engine(problem, options, {&point, false}, context);
      engine->follow(point);
      Evaluation evaluation;
      engine->evaluate(point, {}, evaluation);
      out.loss.back().push_back(evaluation.loss);
      out.error.back().push_back(evaluation.loss_error);
      done += 1;
      context.status({.fraction = done / count,
                      .count = done,
                      .total = count,
                      .unit = "states",
                      .what = "population loss"});
      if (!context.goes_on()) return {};
    }
    out.engine = engine->name();
    out.error_kind = engine->error_kind();
  }
  return out;
}

}  // namespace

PopulationLoss population_loss(const Problem& problem, const EngineOptions& engine,
                               const std::vector<std::vector<SgdRecord>>& recorded,
                               const Context& context) {
  try {
    return losses_of(problem, engine, recorded, context);
  } catch (const Interrupted&) {
    return {};
  }
}

}  // namespace headflow
