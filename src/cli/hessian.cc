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
  const double b = session.point.b ? (*session.point.b)(0, 0) : 0.0;
  if (at == "origin") return origin(problem, b);
  if (at != "saddle") {
    throw OptionError("hessian.at", in_quotes(at), one_of({"point", "origin", "saddle"}, at));
  }
  // Equal heads stay equal: the end of their flow is where specialisation starts from.
  const Vector& mean = problem.prior().mean();
  if (mean.isZero(1e-14)) return origin(problem, b);
  Point start = origin(problem, b);
  for (int h = 0; h < problem.H(); ++h) start.m.row(h) = 0.3 * mean / mean.norm();
  FlowOptions flow;
  flow.integrator = "implicit";
  flow.time = 1e6;
  flow.gradient_tolerance = 1e-9;
  flow.outputs = 1;
  const auto engine = make_flow_engine(problem, session.engine, flow, start);
  Trajectory trajectory;
  integrate_flow(*engine, start, flow, trajectory);
  return trajectory.point.back();
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
  for (Eigen::Index k = 0; k < h.eigenvalues.size(); ++k) {
    if (!rows.empty() && h.eigenvalues[k] - rows.back().eigenvalue <=
                             std::max(2 * error, 1e-9 * std::abs(h.eigenvalues[k]))) {
      ++rows.back().multiplicity;
      continue;
    }
    rows.push_back({h.eigenvalues[k], 1, mode_shape(h.mode(k)), std::nullopt});
  }
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

int run(Invocation& call) {
  const Session& session = call.session;
  const Problem problem(session.problem);
  print_notes(problem, call.quiet);
  EngineOptions options = session.engine;
  options.tolerance = std::min(options.tolerance, 1e-8);
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
    // The error: what a finer rule changes, or the asymmetry where there is none.
    error = h.asymmetry;
    if (engine->tolerance() > 0) {
      options.tolerance = std::max(1e-12, 1e-2 * options.tolerance);
      const auto finer = make_engine(problem, options, {&point, false});
      finer->adapt(point);
      error = std::max(error, (hessian(*finer, point).matrix - h.matrix).cwiseAbs().maxCoeff());
    }
  }
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
    nlohmann::ordered_json out = {{"at", session.hessian_at},
                                  {"point", to_json(problem.frame().leave(point))},
                                  {"spectrum", spectrum},
                                  {"error", error},
                                  {"error_kind", "refinement difference"},
                                  {"escape_rate", rate},
                                  {"dim", D}};
    if (std::isfinite(time)) out["specialisation_time"] = time;
    out["hessian"] = to_json(h.matrix);
    out["engine"] = engine->name();
    fmt::print("{}\n", out.dump(2));
    return kSuccess;
  }
  fmt::print("{:>16}  {:>5}  {:<44}{}\n", "eigenvalue", "times", "eigenvectors",
             at_origin ? "  closed form" : "");
  for (const Row& row : rows) {
    fmt::print("{:>16.9f}  {:>5}  {:<44}{}\n", row.eigenvalue, row.multiplicity, row.shape.text(),
               row.closed_form ? fmt::format("  {:>14.9f}", *row.closed_form) : "");
  }
  fmt::print("error of an entry {:.2g} (refinement difference), engine {}\n", error,
             engine->name());
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
