#include "analysis/fixed_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/symmetries.h"
#include "dynamics/integrator.h"
#include "expectation/factorised/factorised.h"
#include "theory/origin.h"

namespace headflow {
namespace {

constexpr int kMostNewton = 30;
constexpr double kLongestStep = 1.0;      // of Newton
constexpr double kFurthest = 3.0;         // that Newton may go from where the flow was
constexpr double kSmallR = 0.3;           // below, R = 0 is tried
constexpr double kLeastGradient = 1e-11;  // no use to ask the flow for less
constexpr double kNothing = 1e-9;         // displacement from a saddle that is rounding
constexpr double kLeft = 0.03;            // displacement of a flow that has left it
constexpr int kMostFailures = 20;         // of the integrator
constexpr int kMostSaddles = 50;          // passed, or looked at again
constexpr double kTooLarge = 1e6;         // a coordinate: on its way to infinity
constexpr double kManySamples = 5e6;      // of one evaluation of the flow, B-softmax
constexpr double kLoosest = 1e-3;         // tolerance of the flow
constexpr double kWay = 5e-4;             // the same with quasi-random nodes, to begin with
constexpr double kFading = 3.5e-4;        // and while R fades
constexpr double kLongestTime = FixedPointOptions().longest_time;

/// The gradient in the Hessian's coordinates.
Vector restricted(const Hessian& h, const Point& grad) {
  const Vector all = grad.packed();
  Vector out(static_cast<Eigen::Index>(h.coordinates.size()));
  for (Eigen::Index i = 0; i < out.size(); ++i) {
    out[i] = all[h.coordinates[static_cast<std::size_t>(i)]];
  }
  return out;
}

/// A point and what is known there.
struct Place {
  Point point;
  Evaluation e;
  Hessian curvature;
  Matrix symmetries;  ///< directions along which the loss cannot change
  double zero = 0;    ///< below, an eigenvalue counts as zero

  /// Along symmetries it is nothing but error.
  Vector gradient() const {
    const Vector all = restricted(curvature, e.grad);
    return all - symmetries * (symmetries.transpose() * all);
  }
  int index() const { return static_cast<int>((curvature.eigenvalues.array() < -zero).count()); }
};

/// Along symmetries there is no curvature that matters: straight lines leave the orbit, and what
/// the Hessian has there is the gradient, where that is not zero yet.
void flatten(const Matrix& symmetries, Hessian& h) {
  if (symmetries.cols() == 0) return;
  const auto across = [&](Matrix& x) {
    x -= symmetries * (symmetries.transpose() * x).eval();
    x -= (x * symmetries).eval() * symmetries.transpose();
  };
  across(h.matrix);
  if (h.change.size() > 0) across(h.change);
  const SymmetricEigen solver(h.matrix);
  h.eigenvalues = solver.eigenvalues();
  h.eigenvectors = solver.eigenvectors();
}

void look(Engine& engine, Place& place) {
  engine.evaluate(place.point, {.gradient_error = true}, place.e);
  // Differences miss what nodes do not see at R = 0.
  place.curvature = hessian(
      engine, place.point,
      engine.has_cheap_products() ? SecondDerivatives::best : SecondDerivatives::differences);
  place.symmetries =
      symmetry_directions(engine.problem(), place.point, place.curvature.coordinates);
  flatten(place.symmetries, place.curvature);
  if (place.curvature.change.size() > 0) {
    place.zero = std::max(2 * place.curvature.error_near_zero(),
                          1e-9 * place.curvature.eigenvalues.cwiseAbs().maxCoeff());
    return;
  }
  double error = engine.tolerance();
  // Where the tolerance is out of reach: the error that there is.
  if (error > 0) error = std::max(error, 0.01 * place.e.grad_error.m.maxCoeff());
  place.zero = std::max({10 * place.curvature.asymmetry, 100 * error,
                         1e-9 * place.curvature.eigenvalues.cwiseAbs().maxCoeff()});
}

/// Newton's step: towards the minimum along directions of positive curvature and away from it along
/// the others, so that a saddle is found, too; downhill along those whose curvature is not
/// resolved.
Vector newton_step(const Place& place, double target, double longest) {
  const Hessian& h = place.curvature;
  const Vector along = h.eigenvectors.transpose() * place.gradient();
  Vector step = Vector::Zero(along.size());
  for (Eigen::Index k = 0; k < along.size(); ++k) {
    const double x = h.eigenvalues[k];
    if (std::abs(x) > place.zero) {
      step[k] = -along[k] / x;
    } else if (std::abs(along[k]) > 0.1 * target) {
      step[k] = -along[k] / std::max(std::abs(x), 1e-3 * place.zero);
    }
  }
  Vector out = h.eigenvectors * step;
  if (out.norm() > longest) out *= longest / out.norm();
  return out;
}

Point moved(const Hessian& h, const Point& point, const Vector& step) {
  Vector all = point.packed();
  for (Eigen::Index i = 0; i < step.size(); ++i) {
    all[h.coordinates[static_cast<std::size_t>(i)]] += step[i];
  }
  Point out = point;
  out.unpack(all.data());
  if (point.R.isZero(0.0)) out.R.setZero();  // it has no gradient there, but for rounding
  return out;
}

/// Smallest curvature of the loss in R at R = 0.
double least_curvature_of_R(const Place& place) {
  const Eigen::Index H = place.point.heads(), first = place.point.m.size();
  Matrix S(H, H);
  for (Eigen::Index h = 0; h < H; ++h) {
    for (Eigen::Index k = 0; k < H; ++k) {
      S(h, k) = place.curvature.matrix(first + h * H, first + k * H);
    }
  }
  return SymmetricEigen(S).eigenvalues()[0];
}

/// Coordinates in which a way is measured.
Vector travelled(const Problem& problem, const Point& point) {
  Point out = point;
  out.blocks.values() = problem.activation().travelled(point.blocks);
  return out.packed();
}

/// Newton's method until the gradient is below `target`, with a new Hessian only where the last one
/// no longer serves. To a saddle if `to_saddle`; else downhill only, where the Hessian has no
/// negative eigenvalue, and not far: the flow would go there, too. False if that fails.
bool newton(Engine& engine, Place& place, double target, bool to_saddle,
            std::int64_t& evaluations) {
  const Vector origin = travelled(engine.problem(), place.point);
  double longest = kLongestStep;
  bool fresh = true;
  for (int step = 0; step < kMostNewton; ++step) {
    const double slope = place.gradient().norm();
    if (slope < target) return true;
    if (!fresh) {
      look(engine, place);
      fresh = true;
      if (!to_saddle && place.index() > 0) return false;
    }
    Place there = place;
    const Vector way = newton_step(place, target, longest);
    there.point = moved(place.curvature, place.point, way);
    if (!to_saddle && (travelled(engine.problem(), there.point) - origin).norm() > kFurthest)
      return false;
    engine.follow(there.point);
    engine.evaluate(there.point, {.loss_error = false}, there.e);
    ++evaluations;
    if (!to_saddle && there.e.loss > place.e.loss + 1e-12 + 2 * engine.tolerance()) {
      longest = 0.25 * std::min(longest, way.norm());
      continue;
    }
    fresh = there.gradient().norm() <
            (engine.whole_hessian() != WholeHessian::none ? 0.3 : 0.1) * slope;
    place = std::move(there);
  }
  return place.gradient().norm() < target;
}

/// Tells the observer of a search where its flows are, and asks it; stops a flow that has become
/// too costly.
class FlowWatch final : public Observer {
 public:
  FlowWatch(const Context& outer, double time, std::int64_t evaluations)
      : outer_(outer), time_(time), evaluations_(static_cast<double>(evaluations)) {}
  /// A flow with this engine is stopped if it takes too many nodes.
  void watch_cost(const Engine& engine) { engine_ = &engine; }
  bool too_costly() const {
    return engine_ && static_cast<double>(engine_->samples()) > kManySamples;
  }

  Wish wish() const override {
    const Wish wanted = outer_.observer ? outer_.observer->wish() : Wish::go_on;
    return wanted == Wish::go_on && stop_ ? Wish::stop : wanted;
  }
  void status(const Status& now) override {
    Status all = now;
    all.time += time_;
    all.count += evaluations_;
    all.fraction = std::log1p(all.time) / std::log1p(kLongestTime);
    outer_.status(all);
    stop_ = too_costly();
  }

 private:
  const Context& outer_;
  double time_, evaluations_;
  const Engine* engine_ = nullptr;
  bool stop_ = false;
};

/// One search. The engine of the flow is cheap, that of Newton's method shows curvatures, that of
/// the result is the most exact one.
class Search {
 public:
  Search(const Problem& problem, const EngineOptions& engine, const FixedPointOptions& options,
         const Context& context)
      : problem_(problem), engine_(engine), options_(options), context_(context) {}

  /// What the search has reached if it is stopped from within an evaluation.
  FixedPoint run(const Point& start) {
    try {
      return search(start);
    } catch (const Interrupted&) {
      if (out_.point.m.size() == 0) throw;
      out_.message = fmt::format("interrupted at tau = {:.6g}", out_.time);
      return std::move(out_);
    }
  }

 private:
  FixedPoint search(const Point& start) {
    point_ = start;
    tolerance_ = std::min(10 * engine_.tolerance, kLoosest);
    std::unique_ptr<Engine> rough = quasi_random_nodes();
    if (!rough) rough = make(tolerance_);
    // Samples would break symmetries that nodes keep: not later, either.
    if (!rough->sampled()) engine_.engine = EngineName::factorised;
    double gradient = options_.flow_gradient, tolerance = tolerance_;
    for (int failures = 0, saddles = 0; failures < kMostFailures;) {
      // Few quasi-random nodes show the way, too: the gradient of their own loss is exact.
      // Where R fades it is errors of the nodes that would be followed in the end.
      double least = gradient;
      if (rough->quasi_random()) {
        least = rests_on_R(*rough) ? std::max(gradient, kFading) : 30 * gradient;
      }
      if (least < tolerance) rough = make(tolerance = std::max(least, 1e-12));
      const FlowOutcome outcome = follow(*rough, options_.longest_time - out_.time, gradient);
      if (outcome == FlowOutcome::interrupted) {
        if (!too_costly_) return std::move(out_);
        // Quasi-random nodes cost more with every digit, and few of them show the way.
        tolerance_ = rough->quasi_random() ? std::max(tolerance_, kWay)
                                           : std::min(10 * tolerance_, kLoosest);
        may_loosen_ = !rough->quasi_random();
        rough = make(tolerance = tolerance_);
        continue;
      }
      if (outcome == FlowOutcome::diverged) ++failures;
      if (point_.packed().cwiseAbs().maxCoeff() > kTooLarge) break;
      const bool last = out_.time >= options_.longest_time || gradient < kLeastGradient ||
                        saddles == kMostSaddles;
      double escape = 0;
      if (last || !rests_on_R(*rough)) {
        if (arrive(*rough, last, escape)) return std::move(out_);
      } else if (outcome == FlowOutcome::stationary && gradient <= options_.gradient) {
        Place place;  // no use for Newton: the end is far away, and this is what was asked for
        place.point = point_;
        look(*rough, place);
        report(*rough, place);
        return std::move(out_);
      }
      if (last) break;
      if (escape > 0) {
        // If it does not leave, the engine may be too rough to see where to.
        if (++saddles % 5 == 0) rough = make(tolerance = std::max(0.1 * tolerance, 1e-9));
        // The gradient is small here: no stop for that.
        escape = std::min(escape, options_.longest_time - out_.time);
        const FlowOutcome left = follow(*rough, escape, 0);
        if (left == FlowOutcome::interrupted) return std::move(out_);
        if (left == FlowOutcome::diverged) ++failures;
      } else if (outcome != FlowOutcome::diverged) {
        // While R fades there is nothing to gain from less than what was asked for.
        const double least = rests_on_R(*rough) ? options_.gradient : 0.0;
        gradient = std::max(0.1 * gradient, std::min(least, gradient));
      }
    }
    if (out_.message.empty()) out_.message = "no fixed point was found";
    return std::move(out_);
  }

  /// The engine, if it is one with quasi-random nodes, which `auto` might pass over for samples: as
  /// they stay where they are, and know all second derivatives, they serve better here. Else null.
  std::unique_ptr<Engine> quasi_random_nodes() {
    const bool may_be = engine_.engine == EngineName::factorised ||
                        (engine_.engine == EngineName::automatic && engine_.samples == 0);
    if (!may_be || !Factorised::why_not(problem_).empty()) return nullptr;
    EngineOptions options = engine_;
    options.engine = EngineName::factorised;
    options.tolerance = kWay;
    auto engine = make_engine(problem_, options, {&point_, false}, context_);
    if (!engine->cost_may_explode()) return nullptr;
    engine->adapt(point_);
    if (!engine->quasi_random()) return nullptr;
    tolerance_ = kWay;
    return engine;
  }

  std::unique_ptr<Engine> make(double tolerance) const {
    EngineOptions options = engine_;
    options.tolerance = std::max(tolerance, 1e-12);
    return make_engine(problem_, options, {&point_, false}, context_);
  }

  /// The flow, from where it was; not beyond `time`, and until the gradient is that small.
  FlowOutcome follow(Engine& engine, double time, double gradient) {
    FlowOptions flow;
    flow.integrator = Scheme::implicit;
    // Steps cannot be more exact than the gradient.
    flow.rtol = std::max(options_.rtol, 0.1 * engine.tolerance());
    flow.atol = std::max(options_.atol, 1e-3 * engine.tolerance());
    flow.outputs = 1;
    flow.time = std::max(1.0, time);
    flow.gradient_tolerance = gradient;
    Trajectory trajectory;
    const bool may_loosen = may_loosen_ && engine.cost_may_explode() &&
                            engine.tolerance() < kLoosest && gradient >= options_.flow_gradient;
    const auto watch = std::make_shared<FlowWatch>(context_, out_.time, out_.evaluations);
    if (may_loosen) watch->watch_cost(engine);
    const FlowSummary summary =
        integrate_flow(engine, point_, flow, trajectory, context_.watched_by(watch));
    too_costly_ =
        summary.outcome == FlowOutcome::interrupted && context_.goes_on() && watch->too_costly();
    out_.time += summary.final_time;
    out_.evaluations += summary.evaluations;
    out_.message = summary.message;
    out_.point = point_ = trajectory.point.back();
    out_.loss = trajectory.loss.back();
    out_.loss_error = trajectory.loss_error.back();
    out_.gradient_norm = trajectory.gradient_norm.back();
    out_.engine = engine.name();
    out_.error_kind = engine.error_kind();
    return summary.outcome;
  }

  /// True while heads have parts outside the features that fade slowly: the end is far.
  bool rests_on_R(const Engine& rough) const {
    return rough.quasi_random() && problem_.trains("R") && point_.R.norm() > kSmallR;
  }

  /// Tries to go from where the flow is to its end by Newton's method, and reports that. At a
  /// saddle, which is the end only if nothing of the gradient is along its unstable directions or
  /// if this is the last try: the time it takes the flow to leave it in `escape`.
  bool arrive(Engine& rough, bool last, double& escape) {
    const bool quasi_random = rough.quasi_random();
    std::unique_ptr<Engine> engine = make((quasi_random ? 0.1 : 0.01) * tolerance_);
    Place place;
    place.point = point_;
    if (!without_R(*engine, quasi_random ? rough : *engine, place)) {
      place.point = point_;
      engine->adapt(place.point);
      look(*engine, place);
    }
    const bool saddle = place.index() > 0;
    if (saddle) {
      const Vector along = place.curvature.eigenvectors.transpose() * place.gradient();
      double soonest = HUGE_VAL;
      for (int k = 0; k < place.index(); ++k) {
        const double rate = -place.curvature.eigenvalues[k], displaced = std::abs(along[k]) / rate;
        if (displaced < kNothing) continue;
        soonest = std::min(soonest, std::max(1.0, std::log(kLeft / displaced)) / rate);
      }
      if (soonest < HUGE_VAL && !last) {
        escape = soonest;
        return false;
      }
    }
    const double target = 0.3 * options_.gradient;
    const double error = !engine->sampled() ? place.e.grad_error.m.maxCoeff() : 0.0;
    const bool can_do_better = !engine->sampled() && error <= engine->tolerance();
    const double near = (quasi_random ? 0.03 : 1) * engine->tolerance();
    if (!newton(*engine, place, can_do_better ? std::max(target, near) : target, saddle,
                out_.evaluations) &&
        !last) {
      return false;
    }
    if (can_do_better && !(quasi_random && engine->tolerance() <= engine_.tolerance)) {
      // The error of quasi-random nodes stays what was asked for; their own gradient vanishes.
      engine = make(quasi_random ? engine_.tolerance
                                 : std::min(engine_.tolerance, 0.03 * options_.gradient));
      engine->adapt(place.point);
      engine->evaluate(place.point, {}, place.e);
      if (!newton(*engine, place, target, saddle, out_.evaluations) && !last) return false;
    }
    look(*engine, place);
    if (!last && (place.index() > 0) != saddle) return false;
    report(*engine, place);
    return true;
  }

  /// R decays where the loss is curved upwards along it, so that it need not be followed: looks at
  /// the point without R. Without it the Hessian is cheap, and B-softmax's nodes are few.
  /// Losses are compared on the same nodes, those of `there`.
  bool without_R(Engine& engine, Engine& there, Place& place) const {
    if (point_.R.norm() > kSmallR || !problem_.trains("m") || !problem_.trains("R")) return false;
    if (&there == &engine) engine.adapt(place.point);
    there.evaluate(place.point, {.gradient_error = true}, place.e);
    const double before = place.e.loss;
    const double along = place.e.grad.R.cwiseProduct(point_.R).sum();
    const double error = point_.R.cwiseAbs().sum() * place.e.grad_error.max();
    if (along < -error) return false;
    place.point.R.setZero();
    if (&there == &engine) engine.adapt(place.point);
    there.evaluate(place.point, {.loss_error = false}, place.e);
    if (!(place.e.loss < before + there.tolerance())) return false;
    if (&there != &engine) engine.adapt(place.point);
    look(engine, place);
    return least_curvature_of_R(place) > place.zero;
  }

  void report(const Engine& engine, const Place& place) {
    out_.engine = engine.name();
    out_.error_kind = engine.error_kind();
    out_.point = place.point;
    out_.loss = place.e.loss;
    out_.loss_error = place.e.loss_error;
    out_.gradient_norm = place.gradient().norm();
    out_.converged = out_.gradient_norm < options_.gradient;
    out_.newton_distance = (place.point.packed() - point_.packed()).norm();
    out_.eigenvalues = place.curvature.eigenvalues;
    out_.error = place.zero;
    const int index = place.index(), symmetries = static_cast<int>(place.symmetries.cols());
    out_.index = index;
    out_.stability = index > 0 ? Stability::saddle : Stability::minimum;
    out_.escape_rate = index > 0 ? -out_.eigenvalues[0] : 0.0;
    out_.symmetries = symmetries;
    // Symmetries are zero modes, measured or not.
    out_.zero_modes = std::max(
        static_cast<int>((out_.eigenvalues.array().abs() <= place.zero).count()), symmetries);
    int unused = 0;
    for (int h = 0; h < place.point.heads(); ++h) {
      const bool small = place.point.m.row(h).norm() < 1e-6 && place.point.R.row(h).norm() < 1e-6;
      unused += small || problem_.activation().silent(place.point.blocks, h);
    }
    out_.unused_heads = unused;
    out_.message = fmt::format(
        "{} with gradient {:.2g} after tau = {:.4g}; Newton moved it by {:.2g}",
        index == 0
            ? "a minimum"
            : fmt::format("a saddle of index {} (escape rate {:.3g})", index, -out_.eigenvalues[0]),
        out_.gradient_norm, out_.time, out_.newton_distance);
  }

  const Problem& problem_;
  EngineOptions engine_;
  const FixedPointOptions& options_;
  const Context& context_;
  double tolerance_ = 0;     ///< of the flow
  bool too_costly_ = false;  ///< the flow stopped for a looser one
  bool may_loosen_ = true;
  Point point_;  ///< where the flow is
  FixedPoint out_;
};

}  // namespace

FixedPoint find_fixed_point(const Problem& problem, const EngineOptions& engine, const Point& start,
                            const FixedPointOptions& options, const Context& context) {
  check_second_derivatives(problem);
  check_unknowns(problem, "the search for a fixed point");
  return Search(problem, engine, options, context).run(start);
}

Point unspecialised_end(const Problem& problem, const EngineOptions& engine, const Blocks& blocks,
                        const Context& context) {
  const Vector& mean = problem.prior().mean();
  Point out = origin(problem, blocks);
  if (mean.isZero(1e-14)) return out;
  const Problem alone = problem.with_heads(1);
  Point start = origin(alone, out.blocks.of_heads({0}));
  start.m.row(0) = 0.3 * mean / mean.norm();
  const Point end = find_fixed_point(alone, engine, start, {}, context).point;
  if (!context.goes_on()) throw Interrupted();
  out.m = Vector::Ones(problem.H()) * end.m;
  for (const BlockLayout::Entry& e : out.blocks.entries()) {  // the same for all heads
    const auto of_one = end.blocks[e.info.name];
    auto of_all = out.blocks[e.info.name];
    for (Eigen::Index i = 0; i < of_all.size(); ++i) of_all[i] = of_one[i % of_one.size()];
  }
  return out;
}

}  // namespace headflow
