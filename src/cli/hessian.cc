#include "analysis/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/fixed_point.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "core/error.h"
#include "core/suggest.h"
#include "dynamics/integrator.h"
#include "expectation/check_engine.h"
#include "io/recorded_start.h"
#include "theory/origin.h"

namespace headflow::cli {
namespace {

/// The point that hessian.at names.
Point named_point(const Config& config, const Problem& problem, const Context& context) {
  const HessianAt at = config.hessian.at;
  if (at == HessianAt::point) return config.point.make(problem);
  // Of [point], only the blocks count: where heads are equal, or what they start from.
  PointOptions only_blocks;
  only_blocks.blocks = config.point.blocks;
  const Point given = only_blocks.make(problem);
  const auto& entries = given.blocks.entries();
  const bool of_heads = !entries.empty() && entries.front().per_head();
  const double first = of_heads ? given.blocks.values()[0] : 0.0;
  Point point = origin(problem, first);
  if (of_heads) {
    const std::string& name = entries.front().info.name;
    const auto values = given.blocks[name];
    const bool equal = (values.array() - first).abs().maxCoeff() == 0;
    // With other blocks, attention is 1/L only if all heads are equal.
    if (!equal && (at == HessianAt::saddle || entries.size() > 1)) {
      throw OptionError(
          "point." + name, parameter_text(Matrix(values.transpose())),
          fmt::format("must be equal for all heads at the {}; or use --at point", to_string(at)));
    }
    point.blocks[name] = values;
  }
  return at == HessianAt::saddle ? unspecialised_end(problem, config.run, first, context) : point;
}

struct Eigenspace {
  double eigenvalue;
  int multiplicity;
  ModeShape shape;
  std::optional<double> closed_form;
};

/// Equal eigenvalues together; beside them the nearest closed form of the same kind.
std::vector<Eigenspace> rows_of(const Hessian& h, double error,
                                const std::vector<OriginMode>& modes) {
  std::vector<Eigenspace> rows;
  std::vector<std::vector<Point>> modes_of;
  for (Eigen::Index k = 0; k < h.eigenvalues.size(); ++k) {
    if (!rows.empty() && h.eigenvalues[k] - rows.back().eigenvalue <=
                             std::max(2 * error, 1e-9 * std::abs(h.eigenvalues[k]))) {
      ++rows.back().multiplicity;
      modes_of.back().push_back(h.mode(k));
      continue;
    }
    rows.push_back({h.eigenvalues[k], 1, {}, std::nullopt});
    modes_of.push_back({h.mode(k)});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].shape = mode_shape(modes_of[i]);
  for (Eigenspace& row : rows) {
    if (row.shape.of_blocks() > 0.5) continue;
    for (const OriginMode& mode : modes) {
      const double distance = std::abs(mode.eigenvalue - row.eigenvalue);
      if (!row.closed_form || distance < std::abs(*row.closed_form - row.eigenvalue)) {
        row.closed_form = mode.eigenvalue;
      }
    }
  }
  return rows;
}

/// What is printed.
struct HessianResult {
  Point point;
  std::unique_ptr<Engine> engine;
  Hessian h;
  double loss = 0, gradient_norm = 0;
  double error = 0;  ///< of an entry of the Hessian
  std::vector<Eigenspace> rows;
  bool at_origin = false;

  std::string_view error_kind() const {
    return to_string(engine->sampled() ? ErrorKind::other_samples : ErrorKind::refinement);
  }
  double rate() const { return std::max(0.0, -h.eigenvalues[0]); }
  /// Until differences of order D^(-1/2) are of order one.
  double time(double D) const {
    return rate() > 10 * error ? std::log(D) / (2 * rate()) : HUGE_VAL;
  }
};

HessianResult compute(const Config& config, const Problem& problem, const Context& context) {
  EngineOptions options = config.run;
  options.tolerance = std::min(options.tolerance, 1e-8);
  HessianResult out;
  check_unknowns(problem, "the Hessian");
  out.point = named_point(config, problem, context);
  out.engine = make_engine(problem, options, {&out.point, false}, context);
  out.engine->adapt(out.point);
  out.h = hessian(*out.engine, out.point);
  Evaluation e;
  out.engine->evaluate(out.point, {.loss_error = false}, e);
  out.loss = e.loss;
  problem.freeze(e.grad);
  out.gradient_norm = e.grad.norm();
  // The error: what a finer rule changes, or other samples do.
  const auto differs = [&](Engine& other) {
    return (hessian(other, out.point).matrix - out.h.matrix).cwiseAbs().maxCoeff();
  };
  if (!out.engine->sampled()) {
    options.tolerance = std::max(1e-12, 1e-2 * options.tolerance);
    const auto finer = make_engine(problem, options, {&out.point, false}, context);
    finer->adapt(out.point);
    out.error = std::max(out.h.asymmetry, differs(*finer));
  } else {
    out.engine->refresh(1);
    out.error = std::max(out.h.asymmetry, differs(*out.engine));
  }
  if (!out.h.matrix.allFinite() || !std::isfinite(out.error) || !std::isfinite(out.loss)) {
    throw Error(
        "the Hessian is not finite here: the numbers of [problem] and [point] are too large for "
        "doubles");
  }
  const double first = out.point.blocks.size() > 0 ? out.point.blocks.values()[0] : 0.0;
  out.at_origin = is_origin(problem, out.point) && problem.frame().is_identity() &&
                  problem.activation().origin_constants(problem.sizes(), first);
  out.rows = rows_of(out.h, out.error,
                     out.at_origin ? origin_modes(problem, first) : std::vector<OriginMode>{});
  return out;
}

nlohmann::ordered_json shares_json(const ModeShape& shape) {
  nlohmann::ordered_json out = {{"m", shape.m}, {"R", shape.R}};
  for (const auto& [name, share] : shape.blocks) out[name] = share;
  return out;
}

nlohmann::ordered_json eigenspace_json(const Eigenspace& row) {
  nlohmann::ordered_json entry = {{"eigenvalue", row.eigenvalue},
                                  {"multiplicity", row.multiplicity},
                                  {"mode", row.shape.text()},
                                  {"shares", shares_json(row.shape)},
                                  {"alike", row.shape.along}};
  if (row.shape.direction.size() > 0) {
    entry["direction"] =
        std::vector<double>(row.shape.direction.begin(), row.shape.direction.end());
  }
  if (row.closed_form) entry["closed_form"] = *row.closed_form;
  return entry;
}

void print_json(const Problem& problem, const HessianResult& result, const std::string& at,
                double D) {
  auto spectrum = nlohmann::ordered_json::array();
  for (const Eigenspace& row : result.rows) spectrum.push_back(eigenspace_json(row));
  const Hessian& h = result.h;
  nlohmann::ordered_json out = {{"at", at},
                                {"point", to_json(problem.frame().leave(result.point))},
                                {"loss", result.loss},
                                {"spectrum", spectrum},
                                {"error", result.error},
                                {"error_kind", result.error_kind()},
                                {"gradient_norm", result.gradient_norm},
                                {"escape_rate", result.rate()},
                                {"dim", D}};
  if (std::isfinite(result.time(D))) out["specialisation_time"] = result.time(D);
  out["hessian"] = to_json(h.matrix);
  out["eigenvalues"] = std::vector<double>(h.eigenvalues.begin(), h.eigenvalues.end());
  out["eigenvectors"] = to_json(Matrix(h.eigenvectors.transpose()));
  out["engine"] = result.engine->name();
  fmt::print("{}\n", json_text(out));
}

void print_text(const Problem& problem, const HessianResult& result, const std::string& at,
                double D) {
  fmt::print("at {}, loss {:.9f}\n", at, result.loss);
  print_point(problem, result.point);
  fmt::print("{:>16}  {:>5}  {:<44}{}\n", "eigenvalue", "times", "eigenvectors",
             result.at_origin ? "  closed form" : "");
  for (const Eigenspace& row : result.rows) {
    const double value = std::abs(row.eigenvalue) <= result.error ? 0.0 : row.eigenvalue;
    fmt::print("{:>16.9f}  {:>5}  {}\n", value, row.multiplicity,
               row.closed_form
                   ? fmt::format("{:<44}  {:>14.9f}", row.shape.text(), *row.closed_form + 0.0)
                   : row.shape.text());
  }
  fmt::print("error of an entry {:.2g} ({}), engine {}\n", result.error, result.error_kind(),
             result.engine->name());
  if (result.gradient_norm > 1e-6 + 10 * result.error) {
    fmt::print(
        "the gradient is not zero here (norm {:.3g}): the flow moves on, whatever the curvature\n",
        result.gradient_norm);
  }
  const double rate = result.rate(), time = result.time(D);
  if (std::isfinite(time)) {
    fmt::print(
        "unstable: differences grow as e^({:.5g} tau); from D^(-1/2) at D = {:g} they are of order "
        "one after tau = log(D) / (2 x {:.5g}) = {:.4g}\n",
        rate, D, rate, time);
  } else {
    fmt::print("no direction of negative curvature\n");
  }
}

int run_hessian(Invocation& call) {
  Config& config = call.config;
  const bool from_file = !config.flow.init_from.empty();
  for (const Key& key : keys()) {
    if (key.section != "point" || !call.origins.flag(key.full_name())) continue;
    if (config.hessian.at == HessianAt::point && !from_file) continue;
    throw Error(fmt::format("{} is not used: the point is {}", key.full_name(),
                            config.hessian.at != HessianAt::point
                                ? "hessian.at = " + in_quotes(config.hessian.at)
                                : "that of flow.init_from"));
  }
  if (config.hessian.at == HessianAt::point) {
    if (!from_file) note_unused_point(call);
    config.flow.check_start();
    const RecordedStart start = take_recorded_start(config);
    call.taken_from = start.taken_from;
    print_note(start.note, call.quiet);
  } else if (call.origins.flag("flow.init_from")) {
    throw OptionError("hessian.at", in_quotes(config.hessian.at),
                      "and flow.init_from are two different points; give one of them");
  }
  const Problem problem(config.problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  if (config.sgd.dim < problem.F() + problem.H()) {
    throw OptionError(
        "sgd.dim", fmt::format("{}", config.sgd.dim),
        fmt::format("must be at least features + heads = {}", problem.F() + problem.H()));
  }
  const HessianResult result = [&] {
    const Elapsed elapsed(Progress::detect(call.quiet), "hessian: working");
    return compute(config, problem, Watched(call, "hessian"));
  }();
  const auto D = static_cast<double>(config.sgd.dim);
  const std::string at(to_string(config.hessian.at));
  if (call.json) {
    print_json(problem, result, call.taken_from.empty() ? at : call.taken_from, D);
  } else {
    print_text(problem, result, call.taken_from.empty() ? "the " + at : call.taken_from, D);
  }
  return kSuccess;
}

}  // namespace

const Command& hessian_command() {
  static const Command command{
      "hessian",
      "Hessian of the loss at a point: spectrum and what it means",
      "The Hessian of the loss in (m, R, b, v) by exact second derivatives, its spectrum with the\n"
      "eigenvectors in words, the closed forms of the paper beside it at the origin, and the time\n"
      "after which heads part at dimension D.\n\n"
      "example:\n"
      "  headflow hessian --prior gaussian --nu 8,2 --heads 4 --tokens 5 --at origin\n"
      "  headflow hessian configs/flow.toml --at saddle --dim 10000\n"
      "  headflow hessian configs/flow.toml --init-from run.nc --init-time 40\n",
      {"problem", "hessian", "point", "flow.init_from", "flow.init_run", "flow.init_time",
       "sgd.dim", "run", "program"},
      true,
      nullptr,
      run_hessian};
  return command;
}

}  // namespace headflow::cli
