// Points that training passes or ends at: their Hessians, and the ends themselves.

#include <algorithm>
#include <cmath>

#include "analysis/minima.h"
#include "analysis/spectrum.h"
#include "core/error.h"
#include "core/index.h"
#include "core/suggest.h"
#include "expectation/check_engine.h"
#include "study/compute.h"
#include "study/keys.h"
#include "study/overlaps.h"
#include "study/settings.h"
#include "theory/origin.h"

namespace headflow {
namespace {

const OverlapNames kWhere{{Part::m, Part::R, Part::blocks}};

/// Is mean attention 1/L at m = R = 0?
bool is_uniform(const Problem& problem, const Blocks& blocks) {
  const std::vector<double> chi(at(problem.H()) * at(problem.L()), 0.0);
  std::vector<double> sigma(chi.size());
  problem.activation().attention(problem.sizes(), chi.data(), blocks.data(), sigma.data());
  for (int l = 0; l < problem.L(); ++l) {
    double mean = 0;
    for (int h = 0; h < problem.H(); ++h) {
      mean += sigma[at(h) * at(problem.L()) + at(l)] / problem.H();
    }
    if (!(std::abs(mean * problem.L() - 1) < 1e-9)) return false;
  }
  return true;
}

/// The origin, for blocks that a user gave. Heads that differ are kept where attention is still 1/L
/// with them, and else refused; what all heads share is what makes it 1/L.
Point origin_with(const Problem& problem, const Blocks& given, const Config& config) {
  const HessianAt where = config.hessian.at;
  Point point = origin(problem, given);
  if (!is_uniform(problem, point.blocks)) {
    throw OptionError("hessian.at", in_quotes(where),
                      fmt::format("is where attention is 1/L at m = R = 0, and that of {} is not; "
                                  "take hessian.at = \"point\"",
                                  problem.activation().name()));
  }
  for (const BlockLayout::Entry& e : given.entries()) {
    const std::string& name = e.info.name;
    if (!e.per_head() || given[name] == point.blocks[name]) continue;
    Point other = point;
    other.blocks[name] = given[name];
    if (where == HessianAt::origin && is_uniform(problem, other.blocks)) {
      point = other;
      continue;
    }
    throw OptionError("point." + name, parameter_text(Matrix(given[name].transpose())),
                      fmt::format("must be equal for all heads at the {}; or take hessian.at = "
                                  "\"point\"",
                                  to_string(where)));
  }
  return point;
}

/// The point that hessian.at names.
Point named_point(const Config& config, const Problem& problem, const Context& context) {
  check_start_was_read(config);
  if (config.hessian.at == HessianAt::point) return config.point.make(problem);
  // Of [point], only the blocks count: where heads are equal, or what they start from.
  PointOptions only_blocks;
  only_blocks.blocks = config.point.blocks;
  const Point point = origin_with(problem, only_blocks.make(problem).blocks, config);
  return config.hessian.at == HessianAt::saddle
             ? unspecialised_end(problem, config.run, point.blocks, context)
             : point;
}

std::vector<double> list_of(const Vector& v) { return {v.begin(), v.end()}; }

/// One entry a space: what its eigenvalue is, how many eigenvectors, and what they are.
void add_eigenspaces(Dataset& out, const Spectrum& found, std::size_t features) {
  const Dimension space{"eigenspace", found.spaces.size()};
  std::vector<double> eigenvalue, multiplicity, m, R, alike, direction, closed_form;
  std::vector<std::string> mode;
  std::vector<std::pair<std::string, std::vector<double>>> blocks;
  for (const Eigenspace& one : found.spaces) {
    eigenvalue.push_back(one.eigenvalue);
    multiplicity.push_back(one.multiplicity);
    mode.push_back(one.shape.text());
    m.push_back(one.shape.m);
    R.push_back(one.shape.R);
    alike.push_back(one.shape.along);
    if (blocks.empty()) {
      for (const auto& [name, share] : one.shape.blocks) blocks.push_back({name, {}});
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].second.push_back(one.shape.blocks[i].second);
    }
    for (std::size_t f = 0; f < features; ++f) {
      direction.push_back(one.shape.direction.size() > 0
                              ? one.shape.direction[static_cast<Eigen::Index>(f)]
                              : std::nan(""));
    }
    closed_form.push_back(one.closed_form.value_or(std::nan("")));
  }
  out.add("eigenvalue", "eigenvalue of the Hessian, once for each eigenspace", {space}, eigenvalue);
  out.add("multiplicity", "dimension of the eigenspace", {space}, multiplicity).whole_numbers();
  out.add_texts("mode", "what the eigenvectors are, in words", {space}, mode);
  out.add("share_m", "share of m in the eigenvectors", {space}, m);
  out.add("share_R", "share of R in the eigenvectors", {space}, R);
  for (auto& [name, share] : blocks) {
    out.add("share_" + name, "share of " + name + " in the eigenvectors", {space},
            std::move(share));
  }
  out.add("alike", "part of the largest share that is equal for all heads", {space}, alike);
  out.add("direction", "unit vector of features that carries most of m",
          {space, {"feature", features}}, direction);
  if (found.at_origin) {
    out.add("closed_form", "closed form of the eigenvalue", {space}, closed_form);
  }
}

/// Columns of a table of ends of training.
struct Ends {
  std::vector<double> loss, error, gradient, index, zero_modes, symmetries, unused;
  std::vector<std::string> kind;
  std::vector<Point> points;

  void add(const FixedPoint& end) {
    const auto known = [](const std::optional<int>& x) { return x ? double(*x) : std::nan(""); };
    loss.push_back(end.loss);
    error.push_back(end.loss_error);
    gradient.push_back(end.gradient_norm);
    index.push_back(known(end.index));
    zero_modes.push_back(known(end.zero_modes));
    symmetries.push_back(known(end.symmetries));
    unused.push_back(known(end.unused_heads));
    kind.emplace_back(to_string(end.stability));
    points.push_back(end.point);
  }

  void put(Dataset& out, const Problem& problem, const Dimensions& along, ErrorKind of_loss) {
    out.add("loss", "population loss", along, loss).with_errors(error, of_loss);
    out.add("gradient_norm", "norm of the gradient", along, gradient);
    out.add_texts("kind", "minimum, saddle or unknown", along, kind);
    out.add("index", "negative eigenvalues of the Hessian", along, index).whole_numbers();
    out.add("zero_modes", "eigenvalues that vanish within their error", along, zero_modes)
        .whole_numbers();
    out.add("symmetries", "of these, directions along which the loss cannot change", along,
            symmetries)
        .whole_numbers();
    out.add("unused_heads", "heads whose removal changes no other head's attention", along, unused)
        .whole_numbers();
    add_overlaps(out, problem, along, kWhere,
                 [&](std::size_t i) { return overlaps_of(problem, points[i]); });
  }
};

}  // namespace

Dataset compute_hessian(const Config& config, const Context& context) {
  const Problem problem = noted_problem(config.problem, context);
  check_engine(problem, config.run);
  if (config.sgd.dim < problem.F() + problem.H()) {
    throw OptionError(
        "sgd.dim", fmt::format("{}", config.sgd.dim),
        fmt::format("must be at least features + heads = {}", problem.F() + problem.H()));
  }
  const Point point = named_point(config, problem, context);
  const Spectrum found = spectrum(problem, config.run, point, context);
  const Hessian& h = found.h;
  const auto n = static_cast<std::size_t>(h.matrix.rows());
  const Dimension coordinate{"coordinate", n}, mode{"eigenvector", n};
  Dataset out{"headflow-hessian", "headflow: Hessian of the loss", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "point", "hessian", "run"}), "",
                    config.run.seed};
  out.tables = {{"eigenspace", "spectrum"}};
  out.set("at", std::string(to_string(config.hessian.at)));
  add_point(out, problem, kWhere, point);
  out.add("loss", "population loss", found.loss);
  out.add("gradient_norm", "norm of the gradient", found.gradient_norm);
  add_eigenspaces(out, found, static_cast<std::size_t>(problem.F()));
  const auto names = coordinate_names(h);
  out.add_texts("coordinate", "what is trained, m as in an orthonormal basis of the directions",
                {coordinate}, names);
  out.add("hessian", "second derivatives of the loss", {coordinate, {"other_coordinate", n}},
          flattened(h.matrix))
      .with_errors(std::vector<double>(n * n, found.error), found.error_kind);
  out.add("eigenvalues", "of the Hessian, in rising order", {mode}, list_of(h.eigenvalues));
  out.add("eigenvectors", "one row each", {mode, coordinate},
          flattened(Matrix(h.eigenvectors.transpose())));
  out.set("error", found.error);
  out.set("error_kind", std::string(to_string(found.error_kind)));
  out.set("escape_rate", found.escape_rate());
  out.set("dim", config.sgd.dim);
  const double time = found.parting_time(static_cast<double>(config.sgd.dim));
  if (std::isfinite(time)) out.set("specialisation_time", time);
  out.set("at_origin", found.at_origin);
  out.set("engine", found.engine);
  return out;
}

Dataset compute_fixed_point(const Config& config, const Context& context) {
  config.flow.check();
  config.end.check();
  const Problem problem = noted_problem(config.problem, context);
  check_engine(problem, config.run);
  const FixedPoint found = find_fixed_point(problem, config.run, flow_start(config, problem),
                                            fixed_point_options(config), context);
  Dataset out{"headflow-fixed-point", "headflow: end of training", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "point", "flow", "end", "run"}), "",
                    config.run.seed};
  Ends ends;
  ends.add(found);
  ends.put(out, problem, {}, found.error_kind);
  add_p(out, problem.p());
  const std::vector<double> eigenvalues = list_of(found.eigenvalues);
  out.add("eigenvalues", "of the Hessian, in rising order", {{"eigenvector", eigenvalues.size()}},
          eigenvalues);
  out.set("converged", found.converged);
  out.set("escape_rate", found.escape_rate);
  out.set("eigenvalue_error", found.error);
  out.set("time", found.time);
  out.set("newton_distance", found.newton_distance);
  out.set("evaluations", found.evaluations);
  out.set("engine", found.engine);
  out.set("error_kind", std::string(to_string(found.error_kind)));
  out.set("message", found.message);
  return out;
}

Dataset compute_minima(const Config& config, const Context& context) {
  const Problem problem = noted_problem(config.problem, context);
  check_engine(problem, config.run);
  if (config.minima.starts < 1 || config.minima.starts > 1'000'000) {
    throw OptionError("minima.starts", fmt::format("{}", config.minima.starts),
                      "must be from 1 to 10^6");
  }
  config.flow.check_start();
  const Minima minima = find_minima(
      problem, config.run, {config.minima.starts, config.flow.noise(), config.run.seed}, context);
  const Dimension minimum{"minimum", minima.found.size()};
  Dataset out{"headflow-minima", "headflow: the distinct ends of training", {}, {}, {}};
  out.provenance = {config_text(config, {"problem", "minima", "flow", "run"}), "", config.run.seed};
  out.tables = {{"minimum", "minima"}};
  Ends ends;
  std::vector<double> starts, share, of_law, share_of_law, above;
  for (const Minimum& one : minima.found) {
    ends.add(one.end);
    starts.push_back(one.starts);
    share.push_back(static_cast<double>(one.starts) / std::max(1, minima.starts));
    of_law.push_back(one.paper_starts);
    share_of_law.push_back(static_cast<double>(one.paper_starts) /
                           std::max(1, minima.paper_starts));
    above.push_back(one.end.loss - minima.found.front().end.loss);
  }
  if (!minima.found.empty()) {
    ends.put(out, problem, {minimum}, minima.found.front().end.error_kind);
    add_p(out, problem.p());
    out.add("starts", "starts that lead here", {minimum}, starts).whole_numbers();
    out.add("share", "of all starts", {minimum}, share);
    out.add("paper_starts", "of these starts, from the paper's initial law", {minimum}, of_law)
        .whole_numbers();
    out.add("share_from_noise", "of starts from the paper's initial law", {minimum}, share_of_law);
    out.add("above_best", "loss above that of the best end found", {minimum}, above);
  }
  out.set("starts", std::int64_t{minima.starts});
  out.set("paper_starts", std::int64_t{minima.paper_starts});
  out.set("failed", std::int64_t{minima.failed});
  out.set("outcome", std::string(to_string(minima.outcome)));
  return out;
}

}  // namespace headflow
