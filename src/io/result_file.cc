#include "io/result_file.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>

#include "core/checksum.h"
#include "core/error.h"
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

}  // namespace

NetcdfWriter::Attributes described(const std::string& long_name) {
  return {{"long_name", long_name}, {"units", "1"}};
}

NetcdfWriter::Attributes time_attributes() {
  return {{"long_name", "training time tau = learning rate x number of steps"},
          {"units", "learning rate x steps"}};
}

void write_axes(NetcdfWriter& file, const Problem& problem) {
  const auto axis = [&](const char* name, int size, const char* long_name) {
    file.dimension(name, static_cast<std::size_t>(size));
    file.variable(name, {name}, one_to(size), {{"long_name", long_name}});
  };
  axis("attention_head", problem.H(), "head");
  axis("other_head", problem.H(), "second head of a pair");
  axis("feature", problem.F(), "hidden direction");
  axis("feature2", problem.F(), "second hidden direction of a pair");
  const auto has_tokens = [](const BlockLayout::Entry& e) {
    return std::ranges::count(e.info.axes, Axis::token) > 0;
  };
  if (std::ranges::any_of(problem.layout()->entries(), has_tokens)) {
    axis("token", problem.L(), "token");
  }
}

void write_blocks(NetcdfWriter& file, const Problem& problem,
                  const std::vector<std::string>& leading, const std::vector<const Blocks*>& values,
                  const std::string& suffix) {
  for (const BlockLayout::Entry& e : problem.layout()->entries()) {
    std::vector<double> all;
    for (const Blocks* one : values) {
      const double* from = one->data() + e.offset;
      if (one->size() == 0) {
        all.insert(all.end(), static_cast<std::size_t>(e.size), std::nan(""));
      } else {
        all.insert(all.end(), from, from + e.size);
      }
    }
    std::vector<std::string> dimensions = leading;
    for (std::string& name : e.info.dimensions()) dimensions.push_back(std::move(name));
    NetcdfWriter::Attributes attributes = described(e.info.meaning);
    attributes.emplace_back("role", "parameter");
    file.variable(e.info.name + suffix, dimensions, all, attributes);
  }
}

void write_provenance(NetcdfWriter& file, const std::string& title, const std::string& format,
                      const Provenance& provenance) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  file.attribute("title", title);
  file.attribute("format", format);
  file.attribute("format_version", static_cast<long long>(kResultFormatVersion));
  file.attribute("program_version", program_version());
  file.attribute("program_commit", program_commit());
  file.attribute("date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
  file.attribute("configuration", provenance.configuration);
  file.attribute("configuration_hash",
                 fmt::format("fnv1a-64 {:016x}", checksum_of(provenance.configuration)));
  file.attribute("command", provenance.command);
  if (provenance.seed) file.attribute("seed", *provenance.seed);
}

std::string build_identity() {
  static const std::string identity = [] {
    std::string out = fmt::format("{} {}", program_version(), program_commit());
    if (!program_commit().ends_with("-dirty") && program_commit() != "unknown") return out;
    std::ifstream program("/proc/self/exe", std::ios::binary);
    Checksum sum;
    std::vector<char> piece(1 << 20);
    while (program.read(piece.data(), std::ssize(piece)), program.gcount() > 0) {
      sum.add(piece.data(), static_cast<std::size_t>(program.gcount()));
    }
    return out + fmt::format(" {:016x}", sum.value());
  }();
  return identity;
}

void write_flow_result(const std::string& path, const Engine& engine, const Trajectory& trajectory,
                       const FlowSummary& summary, const Provenance& provenance) {
  const Problem& problem = engine.problem();
  NetcdfWriter file;
  file.dimension("time", trajectory.time.size());
  write_axes(file, problem);

  std::vector<double> p, m, R, q, r;
  std::vector<const Blocks*> blocks;
  append(p, problem.p());
  for (const Point& point : trajectory.point) {
    append(m, problem.frame().leave(point).m);
    append(R, point.R);
    append(q, point.q());
    append(r, positive_square_root(point.R * point.R.transpose()));
    blocks.push_back(&point.blocks);
  }
  file.variable("time", {"time"}, trajectory.time, time_attributes());
  file.variable("p", {"feature", "feature2"}, p,
                described("overlap of two hidden directions, k*_f . k*_f'"));
  file.variable("m", {"time", "attention_head", "feature"}, m,
                described("overlap of a head with a hidden direction, k_h . k*_f"));
  file.variable("R", {"time", "attention_head", "other_head"}, R,
                described("orthogonal parts of the heads in a fixed orthonormal basis"));
  file.variable("q", {"time", "attention_head", "other_head"}, q,
                described("overlap of two heads, k_h . k_h' = m p^-1 m^T + R R^T"));
  file.variable("r", {"time", "attention_head", "other_head"}, r,
                described("symmetric square root of R R^T"));
  write_blocks(file, problem, {"time"}, blocks);
  file.variable(
      "loss", {"time"}, trajectory.loss,
      {{"long_name", "population loss"}, {"units", "1"}, {"ancillary_variables", "loss_error"}});
  file.variable("loss_error", {"time"}, trajectory.loss_error,
                {{"long_name", "error of the loss"},
                 {"units", "1"},
                 {"error_kind", std::string(to_string(engine.error_kind()))}});
  file.variable("gradient_norm", {"time"}, trajectory.gradient_norm,
                {{"long_name", "Euclidean norm of the gradient of the loss in all that is trained"},
                 {"units", "1"},
                 {"ancillary_variables", "gradient_error"}});
  file.variable("gradient_error", {"time"}, trajectory.gradient_error,
                {{"long_name", "Euclidean norm of the errors of the entries of the gradient"},
                 {"units", "1"},
                 {"error_kind", std::string(to_string(engine.error_kind()))}});

  write_provenance(file, "headflow: flow of the order parameters", "headflow-flow", provenance);
  file.attribute("engine", std::string(engine.name()));
  if (!engine.reason().empty()) file.attribute("engine_reason", engine.reason());
  if (!engine.sampled()) file.attribute("engine_tolerance", engine.tolerance());
  file.attribute("engine_samples", static_cast<long long>(engine.samples()));
  file.attribute("error_kind", std::string(to_string(engine.error_kind())));
  file.attribute("outcome", std::string(to_string(summary.outcome)));
  file.attribute("outcome_message", summary.message);
  file.attribute("steps", static_cast<long long>(summary.steps));
  file.attribute("evaluations", static_cast<long long>(summary.evaluations));
  file.attribute("seconds", summary.seconds);
  file.write(path);
}

bool is_damaged(const std::string& path) {
  try {
    static_cast<void>(NetcdfReader(path).verify());
    return false;
  } catch (const Error&) {
    return true;
  }
}

bool is_result_of(const std::string& path, const std::string& configuration) {
  if (read_attribute(path, "configuration") != configuration ||
      read_attribute(path, "program_version") != program_version() ||
      read_attribute(path, "program_commit") != program_commit()) {
    return false;
  }
  return !is_damaged(path) && NetcdfReader(path).verify();  // damaged: as if it were not there
}

}  // namespace headflow
