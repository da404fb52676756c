#include "analysis/hessian.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/fixed_point.h"
#include "cli/command.h"
#include "cli/json.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/progress.h"
#include "theory/origin.h"

namespace headflow::cli {
namespace {

/// The point that hessian.at names.
Point named_point(const Session& session, const Problem& problem) {
  const std::string& at = session.hessian_at;
  if (at == "point") return session.point.make(problem);
  if (at != "origin" && at != "saddle") {
    throw OptionError("hessian.at", in_quotes(at), one_of({"point", "origin", "saddle"}, at));
  }
  PointOptions only_b;
  only_b.b = session.point.b;
  const Vector b = only_b.make(problem).b;
  const bool equal = (b.array() - b[0]).abs().maxCoeff() == 0;
  if (!equal && (at == "saddle" || problem.activation().info().trains_v)) {
    throw OptionError("point.b", parameter_text(*session.point.b),
                      fmt::format("must be equal for all heads at the {}; or use --at point", at));
  }
  if (at == "saddle") return unspecialised_end(problem, session.engine, b[0]);
  Point point = origin(problem, b[0]);
  if (problem.activation().info().trains_b) point.b = b;
  return point;
}

struct Row {
  double eigenvalue;
  int multiplicity;
  ModeShape shape;
  std::optional<double> closed_form;
};

/// Equal eigenvalues together; beside them the nearest closed form of the same kind.
std::vector<Row> rows_of(const Hessian& h, double error, const std::vector<OriginMode>& modes) {
  std::vector<Row> rows;
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
  for (Row& row : rows) {
    if (row.shape.b + row.shape.v > 0.5) continue;
    for (const OriginMode& mode : modes) {
      const double distance = std::abs(mode.eigenvalue - row.eigenvalue);
      if (!row.closed_form || distance < std::abs(*row.closed_form - row.eigenvalue)) {
        row.closed_form = mode.eigenvalue;
      }
    }
  }
  return rows;
}

/// Norm of the gradient in what the activation trains.
double trained_norm(const Problem& problem, Point grad) {
  if (!problem.activation().info().trains_b) grad.b.setZero();
  if (!problem.activation().info().trains_v) grad.v = 0;
  return grad.norm();
}

int run(Invocation& call) {
  const Session& session = call.session;
  const Problem problem(session.problem);
  print_notes(problem, call.quiet);
  EngineOptions options = session.engine;
  options.tolerance = std::min(options.tolerance, 1e-8);
  if (session.sgd.dim < problem.F() + problem.H()) {
    throw OptionError(
        "sgd.dim", fmt::format("{}", session.sgd.dim),
        fmt::format("must be at least features + heads = {}", problem.F() + problem.H()));
  }
  Evaluation e;
  Hessian h;
  double error = 0;
  Point point;
  std::unique_ptr<Engine> engine;
  {
    const Elapsed elapsed(Progress::detect(call.quiet), "hessian: working");
    point = named_point(session, problem);
    engine = make_engine(problem, options, {&point, false});
    engine->adapt(point);
    h = hessian(*engine, point);
    engine->evaluate(point, {.loss_error = false}, e);
    // The error: what a finer rule changes, or other samples do.
    error = h.asymmetry;
    if (engine->tolerance() > 0) {
      options.tolerance = std::max(1e-12, 1e-2 * options.tolerance);
      const auto finer = make_engine(problem, options, {&point, false});
      finer->adapt(point);
      error = std::max(error, (hessian(*finer, point).matrix - h.matrix).cwiseAbs().maxCoeff());
    } else {
      options.seed += 1;
      options.engine = engine->name();
      const auto other = make_engine(problem, options, {&point, false});
      error = std::max(error, (hessian(*other, point).matrix - h.matrix).cwiseAbs().maxCoeff());
    }
  }
  const char* error_kind =
      engine->tolerance() > 0 ? "refinement difference" : "difference to other samples";
  const bool moves = trained_norm(problem, e.grad) > 1e-6 + 10 * error;
  const bool at_origin = is_origin(problem, point) && problem.frame().is_identity();
  const std::vector<Row> rows =
      rows_of(h, error, at_origin ? origin_modes(problem, point.b[0]) : std::vector<OriginMode>{});
  const double rate = std::max(0.0, -h.eigenvalues[0]);
  const auto D = static_cast<double>(session.sgd.dim);
  const double time = rate > 10 * error ? std::log(D) / (2 * rate) : HUGE_VAL;

  if (call.json) {
    auto spectrum = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json entry = {
          {"eigenvalue", row.eigenvalue},
          {"multiplicity", row.multiplicity},
          {"mode", row.shape.text()},
          {"shares",
           {{"m", row.shape.m}, {"R", row.shape.R}, {"b", row.shape.b}, {"v", row.shape.v}}},
          {"alike", row.shape.along}};
      if (row.shape.direction.size() > 0) {
        entry["direction"] =
            std::vector<double>(row.shape.direction.begin(), row.shape.direction.end());
      }
      if (row.closed_form) entry["closed_form"] = *row.closed_form;
      spectrum.push_back(std::move(entry));
    }
    nlohmann::ordered_json out = {
        {"at", session.hessian_at}, {"point", to_json(problem.frame().leave(point))},
        {"spectrum", spectrum},     {"error", error},
        {"error_kind", error_kind}, {"gradient_norm", trained_norm(problem, e.grad)},
        {"escape_rate", rate},      {"dim", D}};
    if (std::isfinite(time)) out["specialisation_time"] = time;
    out["hessian"] = to_json(h.matrix);
    out["engine"] = engine->name();
    fmt::print("{}\n", json_text(out));
    return kSuccess;
  }
  fmt::print("{:>16}  {:>5}  {:<44}{}\n", "eigenvalue", "times", "eigenvectors",
             at_origin ? "  closed form" : "");
  for (const Row& row : rows) {
    const double value = std::abs(row.eigenvalue) <= error ? 0.0 : row.eigenvalue;
    fmt::print("{:>16.9f}  {:>5}  {}\n", value, row.multiplicity,
               row.closed_form
                   ? fmt::format("{:<44}  {:>14.9f}", row.shape.text(), *row.closed_form + 0.0)
                   : row.shape.text());
  }
  fmt::print("error of an entry {:.2g} ({}), engine {}\n", error, error_kind, engine->name());
  if (moves) {
    fmt::print(
        "the gradient is not zero here (norm {:.3g}): the flow moves on, whatever the curvature\n",
        trained_norm(problem, e.grad));
  }
  if (std::isfinite(time)) {
    fmt::print(
        "unstable: differences grow as e^({:.5g} tau); from D^(-1/2) at D = {:g} they are of order "
        "one after tau = log(D) / (2 x {:.5g}) = {:.4g}\n",
        rate, D, rate, time);
  } else {
    fmt::print("no direction of negative curvature\n");
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
      "  headflow hessian configs/flow.toml --at saddle --dim 10000\n",
      {"problem", "hessian", "point", "sgd.dim", "run", "program"},
      true,
      nullptr,
      run};
  return command;
}

}  // namespace headflow::cli
