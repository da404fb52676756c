#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/unseen.h"
#include "expectation/check_engine.h"
#include "study/compute.h"
#include "study/keys.h"
#include "study/overlaps.h"
#include "study/settings.h"
#include "theory/bayes.h"

namespace headflow {
namespace {

/// Samples that all but agree say nothing of what is rarer than they are.
void note_unseen(const Engine& engine, const Evaluation& result, const Context& context) {
  const double unseen = kUnseen / static_cast<double>(engine.samples());
  if (!engine.sampled() || result.loss_error > 1e-3 * unseen) return;
  context.note(
      fmt::format("all {} samples agree: what happens with a probability below {:.1g} is not "
                  "in their error",
                  engine.samples(), unseen));
}

/// The parts of a gradient with their errors: grad_m, grad_R, grad_<block>.
void add_gradient(Dataset& out, const Problem& problem, const Point& grad, const Point& error,
                  ErrorKind kind) {
  const OverlapNames names{{Part::m, Part::R, Part::blocks}, "grad_", "", ""};
  Dataset values, errors;
  const auto as_it_is = [](const Point& point) {
    return [&point](std::size_t) { return Overlaps{point.m, point.R, {}, point.blocks}; };
  };
  add_overlaps(values, problem, {}, names, as_it_is(grad));
  add_overlaps(errors, problem, {}, names, as_it_is(error));
  for (std::size_t i = 0; i < values.quantities.size(); ++i) {
    Quantity& q = values.quantities[i];
    q.meaning = "derivative of the loss with respect to: " + q.meaning;
    q.role.clear();
    q.with_errors(std::move(errors.quantities[i].values), kind);
    out.quantities.push_back(std::move(q));
  }
}

}  // namespace

Dataset compute_loss(const Config& config, const Context& context) {
  const Problem problem = noted_problem(config.problem, context);
  const Point point = config.point.make(problem);
  check_engine(problem, config.run);
  config.loss.check(problem);
  const Stopwatch watch;
  const auto engine = make_engine(problem, config.run, {&point, false}, context);
  Evaluation result;
  engine->evaluate(point, {.gradient_error = true}, result);
  if (!std::isfinite(result.loss) || !result.grad.all_finite()) {
    throw Error(
        "the loss or its gradient is not finite here: the numbers of [problem] and [point] "
        "are too large for doubles");
  }
  note_unseen(*engine, result, context);
  const double in_frame = result.grad_error.max();  // what the engine was asked for
  Dataset out{"headflow-loss", "headflow: loss and gradient at a point", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "point", "run", "loss"}), "", config.run.seed};
  out.add("loss", "population loss", result.loss)
      .with_errors({result.loss_error}, engine->error_kind());
  if (config.loss.excess > 0) {
    add_excess_risk(out, noted_excess_risk(config, problem, point, context));
  }
  add_gradient(out, problem, problem.frame().leave_gradient(std::move(result.grad)),
               problem.frame().leave_gradient_error(std::move(result.grad_error)),
               engine->error_kind());
  set_engine(out, *engine);
  // A tolerance is a bound: of a standard error two are held against it.
  const bool asked = !engine->sampled() || !engine->reason().empty();
  if (asked && config.run.samples == 0) {
    const double worst = std::max(result.loss_error, in_frame) *
                         (engine->error_kind() == ErrorKind::refinement ? 1.0 : 2.0);
    out.set("tolerance", config.run.tolerance);
    out.set("tolerance_met", worst <= config.run.tolerance);
    if (worst > config.run.tolerance) {
      context.note(fmt::format("the tolerance {:g} is not reached: the largest error is {:.3g}",
                               config.run.tolerance, worst));
    }
  }
  out.set("seconds", watch.seconds());
  return out;
}

Dataset compute_bayes(const Config& config, const Context& context) {
  const Problem problem = noted_problem(config.problem, context);
  check_engine(problem, config.run);
  const Stopwatch watch;
  const BayesRisk found =
      bayes_risk(problem, {.tolerance = config.run.tolerance, .seed = config.run.seed}, context);
  if (!std::isfinite(found.risk)) {
    throw Error("the Bayes risk is not finite: the numbers of [problem] are too large for doubles");
  }
  Dataset out{"headflow-bayes", "headflow: Bayes risk", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "run"}), "", config.run.seed};
  out.add("risk", "Bayes risk: the least loss of any attention", found.risk)
      .with_errors({found.error}, found.error_kind);
  out.set("error_kind", std::string(to_string(found.error_kind)));
  out.set("method", found.method);
  out.set("nodes", found.nodes);
  out.set("tolerance", config.run.tolerance);
  out.set("tolerance_met", found.tolerance_met);
  out.set("seconds", watch.seconds());
  return out;
}

}  // namespace headflow
