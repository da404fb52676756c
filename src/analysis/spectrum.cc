#include "analysis/spectrum.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "dynamics/integrator.h"

namespace headflow {
namespace {

constexpr double kTolerance = 1e-8;  // of the rule, at least

/// Largest difference between entries of two Hessians of one point.
double difference(Engine& engine, const Point& point, const Hessian& h) {
  return (hessian(engine, point).matrix - h.matrix).cwiseAbs().maxCoeff();
}

double error_of(Engine& engine, EngineOptions options, const Point& point, const Hessian& h,
                const Context& context) {
  if (engine.sampled()) {
    engine.refresh(1);
    return std::max(h.asymmetry, difference(engine, point, h));
  }
  if (h.change.size() > 0) return std::max(h.asymmetry, h.change.cwiseAbs().maxCoeff());
  options.tolerance = std::max(1e-12, 1e-2 * options.tolerance);
  const auto finer = make_engine(engine.problem(), options, {&point, false}, context);
  finer->adapt(point);
  return std::max(h.asymmetry, difference(*finer, point, h));
}

void append_names(std::vector<std::string>& out, const std::string& name,
                  const std::vector<Eigen::Index>& shape, Eigen::Index size) {
  for (Eigen::Index i = 0; i < size; ++i) {
    std::string index;
    Eigen::Index rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index = fmt::format("{}{}{}", rest % shape[d] + 1, index.empty() ? "" : ",", index);
      rest /= shape[d];
    }
    out.push_back(index.empty() ? name : fmt::format("{}[{}]", name, index));
  }
}

}  // namespace

std::vector<Eigenspace> eigenspaces(const Hessian& h, double error,
                                    const std::vector<OriginMode>& closed_forms) {
  std::vector<Eigenspace> out;
  std::vector<std::vector<Point>> modes;
  for (Eigen::Index k = 0; k < h.eigenvalues.size(); ++k) {
    const double here = h.eigenvalues[k];
    const double alike = std::max(2 * error, 1e-9 * std::abs(here));
    if (!out.empty() && here - out.back().eigenvalue <= alike) {
      ++out.back().multiplicity;
      modes.back().push_back(h.mode(k));
    } else {
      out.push_back({here, 1, {}, std::nullopt});
      modes.push_back({h.mode(k)});
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    Eigenspace& space = out[i];
    space.shape = mode_shape(modes[i]);
    if (space.shape.of_blocks() > 0.5) continue;  // closed forms are of m and R
    for (const OriginMode& mode : closed_forms) {
      const double distance = std::abs(mode.eigenvalue - space.eigenvalue);
      if (!space.closed_form || distance < std::abs(*space.closed_form - space.eigenvalue)) {
        space.closed_form = mode.eigenvalue;
      }
    }
  }
  return out;
}

double Spectrum::escape_rate() const { return std::max(0.0, -h.eigenvalues[0]); }

double Spectrum::parting_time(double D) const {
  return escape_rate() > 10 * error ? std::log(D) / (2 * escape_rate()) : HUGE_VAL;
}

Spectrum spectrum(const Problem& problem, EngineOptions options, const Point& point,
                  const Context& context) {
  check_unknowns(problem, "the Hessian");
  options.tolerance = std::min(options.tolerance, kTolerance);
  const auto engine = make_engine(problem, options, {&point, false}, context);
  engine->adapt(point);
  Spectrum out;
  out.engine = engine->name();
  out.error_kind = engine->sampled() ? ErrorKind::other_samples : ErrorKind::refinement;
  out.h = hessian(*engine, point);
  Evaluation e;
  engine->evaluate(point, {.gradient_error = true}, e);
  problem.freeze(e.grad);
  out.loss = e.loss;
  out.gradient_norm = e.grad.norm();
  out.error = error_of(*engine, options, point, out.h, context);
  // Where the tolerance is out of reach a finer rule is none.
  const double missed = e.grad_error.max();
  if (!engine->sampled() && missed > options.tolerance) out.error = std::max(out.error, missed);
  if (!out.h.matrix.allFinite() || !std::isfinite(out.error) || !std::isfinite(out.loss)) {
    throw Error(
        "the Hessian is not finite here: the numbers of [problem] and [point] are too large for "
        "doubles");
  }
  out.at_origin = is_origin(problem, point) && problem.frame().is_identity() &&
                  problem.activation().origin_constants(point.blocks);
  out.spaces = eigenspaces(
      out.h, out.error, out.at_origin ? origin_modes(problem, point) : std::vector<OriginMode>{});
  return out;
}

std::vector<std::string> coordinate_names(const Hessian& h) {
  const Point& shape = h.shape;
  std::vector<std::string> all, out;
  append_names(all, "m", {shape.m.rows(), shape.m.cols()}, shape.m.size());
  append_names(all, "R", {shape.R.rows(), shape.R.cols()}, shape.R.size());
  for (const BlockLayout::Entry& e : shape.blocks.entries()) {
    append_names(all, e.info.name, e.shape, e.size);
  }
  for (const Eigen::Index i : h.coordinates) out.push_back(all[static_cast<std::size_t>(i)]);
  return out;
}

}  // namespace headflow
