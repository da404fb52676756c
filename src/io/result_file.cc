#include "io/result_file.h"

#include <commit.h>
#include <fmt/chrono.h>

#include <chrono>
#include <numeric>

#include "io/netcdf_file.h"

namespace headflow {
namespace {

void append(std::vector<double>& out, const Matrix& values) {
  out.insert(out.end(), values.data(), values.data() + values.size());
}

std::vector<int> one_to(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 1);
  return out;
}

NetcdfWriter::Attributes described(const std::string& long_name) {
  return {{"long_name", long_name}, {"units", "1"}};
}

}  // namespace

std::string program_version() { return HEADFLOW_VERSION; }
std::string program_commit() { return HEADFLOW_COMMIT; }

void write_flow_result(const std::string& path, const Engine& engine, const Trajectory& trajectory,
                       const FlowSummary& summary, const Provenance& provenance) {
  const Problem& problem = engine.problem();
  NetcdfWriter file;
  file.dimension("time", trajectory.time.size());
  file.dimension("head", static_cast<std::size_t>(problem.H()));
  file.dimension("head2", static_cast<std::size_t>(problem.H()));
  file.dimension("feature", static_cast<std::size_t>(problem.F()));
  file.dimension("feature2", static_cast<std::size_t>(problem.F()));

  std::vector<double> p, m, R, q, r, b, v;
  append(p, problem.p());
  for (const Point& point : trajectory.point) {
    append(m, problem.frame().leave(point).m);
    append(R, point.R);
    append(q, point.q());
    append(r, positive_square_root(point.R * point.R.transpose()));
    append(b, point.b.transpose());
    v.push_back(point.v);
  }
  file.variable("time", {"time"}, trajectory.time,
                {{"long_name", "training time tau = learning rate x number of steps"},
                 {"units", "learning rate x steps"}});
  file.variable("head", {"head"}, one_to(problem.H()), {{"long_name", "head"}});
  file.variable("head2", {"head2"}, one_to(problem.H()), {{"long_name", "second head of a pair"}});
  file.variable("feature", {"feature"}, one_to(problem.F()), {{"long_name", "hidden direction"}});
  file.variable("feature2", {"feature2"}, one_to(problem.F()),
                {{"long_name", "second hidden direction of a pair"}});
  file.variable("p", {"feature", "feature2"}, p,
                described("overlap of two hidden directions, k*_f . k*_f'"));
  file.variable("m", {"time", "head", "feature"}, m,
                described("overlap of a head with a hidden direction, k_h . k*_f"));
  file.variable("R", {"time", "head", "head2"}, R,
                described("orthogonal parts of the heads in a fixed orthonormal frame"));
  file.variable("q", {"time", "head", "head2"}, q,
                described("overlap of two heads, k_h . k_h' = m p^-1 m^T + R R^T"));
  file.variable("r", {"time", "head", "head2"}, r, described("symmetric square root of R R^T"));
  file.variable("b", {"time", "head"}, b, described("bias of a head"));
  file.variable("v", {"time"}, v, described("global scale"));
  file.variable("loss", {"time"}, trajectory.loss,
                {{"long_name", "population loss E(m, R, b, v)"},
                 {"units", "1"},
                 {"ancillary_variables", "loss_error"}});
  file.variable("loss_error", {"time"}, trajectory.loss_error,
                {{"long_name", "error of the loss"},
                 {"units", "1"},
                 {"error_kind", std::string(to_string(engine.error_kind()))}});
  file.variable("gradient_norm", {"time"}, trajectory.gradient_norm,
                {{"long_name", "Euclidean norm of the gradient of the loss in (m p^-1/2, R, b, v)"},
                 {"units", "1"},
                 {"ancillary_variables", "gradient_error"}});
  file.variable("gradient_error", {"time"}, trajectory.gradient_error,
                {{"long_name", "Euclidean norm of the errors of the entries of the gradient"},
                 {"units", "1"},
                 {"error_kind", std::string(to_string(engine.error_kind()))}});

  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  file.attribute("title", "headflow: flow of the order parameters");
  file.attribute("format", "headflow-flow");
  file.attribute("format_version", static_cast<long long>(kResultFormatVersion));
  file.attribute("program_version", program_version());
  file.attribute("program_commit", program_commit());
  file.attribute("date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
  file.attribute("configuration", provenance.configuration);
  file.attribute("command", provenance.command);
  file.attribute("seed", fmt::format("{}", provenance.seed));
  file.attribute("engine", std::string(engine.name()));
  if (!engine.reason().empty()) file.attribute("engine_reason", engine.reason());
  if (engine.tolerance() > 0) file.attribute("engine_tolerance", engine.tolerance());
  file.attribute("engine_samples", static_cast<long long>(engine.samples()));
  file.attribute("error_kind", std::string(to_string(engine.error_kind())));
  file.attribute("outcome", std::string(to_string(summary.outcome)));
  file.attribute("outcome_message", summary.message);
  file.attribute("steps", static_cast<long long>(summary.steps));
  file.attribute("evaluations", static_cast<long long>(summary.evaluations));
  file.attribute("seconds", summary.seconds);
  file.write(path);
}

bool is_result_of(const std::string& path, const std::string& configuration) {
  const std::string commit = program_commit();
  return !commit.ends_with("-dirty") && read_attribute(path, "configuration") == configuration &&
         read_attribute(path, "program_version") == program_version() &&
         read_attribute(path, "program_commit") == commit;
}

}  // namespace headflow
