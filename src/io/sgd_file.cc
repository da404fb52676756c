#include "io/sgd_file.h"

#include <filesystem>
#include <numeric>

#include "core/error.h"
#include "io/netcdf_file.h"

namespace headflow {
namespace {

void append(std::vector<double>& out, const Matrix& values) {
  out.insert(out.end(), values.data(), values.data() + values.size());
}

template <class Value>
std::vector<double> collect(const std::vector<std::vector<SgdRecord>>& recorded,
                            const Value& value) {
  std::vector<double> out;
  for (const auto& run : recorded) {
    for (const SgdRecord& record : run) append(out, value(record));
  }
  return out;
}

Matrix number(double x) { return Matrix::Constant(1, 1, x); }

std::vector<double> flat(const std::vector<std::vector<double>>& rows) {
  std::vector<double> out;
  for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

NetcdfWriter::Attributes with_error(const std::string& long_name, const std::string& error) {
  return {{"long_name", long_name}, {"units", "1"}, {"ancillary_variables", error}};
}
NetcdfWriter::Attributes error_of(const std::string& long_name, const std::string& kind) {
  return {{"long_name", long_name}, {"units", "1"}, {"error_kind", kind}};
}

}  // namespace

void write_sgd_runs(NetcdfWriter& file, const Problem& problem, const SgdOptions& options,
                    const std::vector<std::int64_t>& output_steps,
                    const std::vector<std::vector<SgdRecord>>& recorded,
                    const PopulationLoss& population, const SgdSummary& summary) {
  const std::size_t outputs = recorded.front().size();
  file.dimension("run", recorded.size());
  file.dimension("time", outputs);
  write_axes(file, problem);
  std::vector<double> time;
  const std::vector<std::int64_t> steps(output_steps.begin(),
                                        output_steps.begin() + std::ptrdiff_t(outputs));
  for (const std::int64_t step : steps) time.push_back(options.lr * static_cast<double>(step));
  std::vector<int> runs(recorded.size());
  std::iota(runs.begin(), runs.end(), 1);
  file.variable("run", {"run"}, runs, {{"long_name", "independent run"}});
  file.variable("time", {"time"}, time, time_attributes());
  file.variable("step", {"time"}, steps, {{"long_name", "steps of SGD"}, {"units", "1"}});

  file.variable("m", {"run", "time", "attention_head", "feature"},
                collect(recorded, [](const SgdRecord& r) { return r.state.m(); }),
                described("overlap of a head with a hidden direction, k_h . k*_f"));
  file.variable("q", {"run", "time", "attention_head", "other_head"},
                collect(recorded, [](const SgdRecord& r) { return r.state.q(); }),
                described("overlap of two heads, k_h . k_h'"));
  std::vector<double> p;
  for (const auto& run : recorded) append(p, run.front().state.p());
  file.variable("p", {"run", "feature", "feature2"}, p,
                described("overlap of two hidden directions, k*_f . k*_f'"));
  file.variable("R", {"run", "time", "attention_head", "other_head"},
                collect(recorded, [](const SgdRecord& r) { return r.state.Lambda; }),
                described("lower triangular, R R^T = q - m p^-1 m^T"));
  file.variable("b", {"run", "time", "attention_head"},
                collect(recorded, [](const SgdRecord& r) { return Matrix(r.state.b.transpose()); }),
                described("bias of a head"));
  file.variable("v", {"run", "time"},
                collect(recorded, [](const SgdRecord& r) { return number(r.state.v); }),
                described("global scale"));
  file.variable("batch_loss", {"run", "time"},
                collect(recorded, [](const SgdRecord& r) { return number(r.loss.mean); }),
                with_error("loss of the batch that is drawn at this time", "batch_loss_error"));
  file.variable("batch_loss_error", {"run", "time"},
                collect(recorded, [](const SgdRecord& r) { return number(r.loss.error); }),
                error_of("error of the loss of a batch", "standard error"));
  if (!population.loss.empty()) {
    file.variable("loss", {"run", "time"}, flat(population.loss),
                  with_error("population loss in the limit of large D", "loss_error"));
    file.variable("loss_error", {"run", "time"}, flat(population.error),
                  error_of("error of the population loss", population.error_kind));
    file.attribute("engine", population.engine);
  }
  file.attribute("method", options.method);
  file.attribute("dim", static_cast<long long>(options.dim));
  file.attribute("batch", static_cast<long long>(options.batch));
  file.attribute("lr", options.lr);
  file.attribute("outcome", summary.outcome);
  file.attribute("steps", static_cast<long long>(summary.steps));
  file.attribute("seconds", summary.seconds);
}

void write_sgd_result(const std::string& path, const Problem& problem, const SgdOptions& options,
                      const std::vector<std::int64_t>& output_steps,
                      const std::vector<std::vector<SgdRecord>>& recorded,
                      const PopulationLoss& population, const SgdSummary& summary,
                      const Provenance& provenance) {
  NetcdfWriter file;
  write_sgd_runs(file, problem, options, output_steps, recorded, population, summary);
  write_provenance(file, "headflow: runs of SGD", "headflow-sgd", provenance);
  file.write(path);
}

std::string checkpoint_path(const std::string& result_path) { return result_path + ".checkpoint"; }

void write_checkpoint(const std::string& path, const SgdCheckpoint& checkpoint,
                      const std::string& configuration) {
  const auto& recorded = checkpoint.recorded;
  const SgdState& shape = recorded.front().front().state;
  NetcdfWriter file;
  file.dimension("run", recorded.size());
  file.dimension("time", recorded.front().size());
  file.dimension("saved", checkpoint.saved.front().size());
  file.dimension("attention_head", static_cast<std::size_t>(shape.heads()));
  file.dimension("other_head", static_cast<std::size_t>(shape.heads()));
  file.dimension("feature", static_cast<std::size_t>(shape.features()));
  file.dimension("feature2", static_cast<std::size_t>(shape.features()));
  file.variable("saved", {"run", "saved"}, flat(checkpoint.saved), {});
  const auto add = [&](const char* name, const std::vector<std::string>& rest, const auto& value) {
    std::vector<std::string> dimensions = {"run", "time"};
    dimensions.insert(dimensions.end(), rest.begin(), rest.end());
    file.variable(name, dimensions, collect(recorded, value), {});
  };
  add("C", {"feature", "feature2"}, [](const SgdRecord& r) { return r.state.C; });
  add("U", {"attention_head", "feature"}, [](const SgdRecord& r) { return r.state.U; });
  add("Lambda", {"attention_head", "other_head"},
      [](const SgdRecord& r) { return r.state.Lambda; });
  add("b", {"attention_head"}, [](const SgdRecord& r) { return Matrix(r.state.b.transpose()); });
  add("v", {}, [](const SgdRecord& r) { return number(r.state.v); });
  add("loss", {}, [](const SgdRecord& r) { return number(r.loss.mean); });
  add("loss_error", {}, [](const SgdRecord& r) { return number(r.loss.error); });
  file.attribute("format", "headflow-sgd-checkpoint");
  file.attribute("configuration", configuration);
  file.attribute("program_version", program_version());
  file.attribute("program_commit", program_commit());
  file.attribute("step", static_cast<double>(checkpoint.step));
  file.write(path);
}

std::optional<SgdCheckpoint> read_checkpoint(const std::string& path,
                                             const std::string& configuration) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const NetcdfReader file(path);
  const bool same_program = file.text("program_version") == program_version() &&
                            file.text("program_commit") == program_commit();
  if (file.text("configuration") != configuration || !same_program) {
    throw FileError(path, fmt::format("is the checkpoint of another {}; delete it to start anew, "
                                      "or choose another --output",
                                      same_program ? "configuration" : "version of headflow"));
  }
  SgdCheckpoint out;
  out.step = static_cast<std::int64_t>(file.number("step"));
  const std::size_t runs = file.size("run"), outputs = file.size("time");
  const auto H = static_cast<Eigen::Index>(file.size("attention_head")),
             F = static_cast<Eigen::Index>(file.size("feature"));
  out.recorded.resize(runs);
  for (std::size_t run = 0; run < runs; ++run) {
    out.saved.push_back(file.values("saved", {"run", "saved"}, {run}));
    const auto read = [&](const char* name, const std::vector<std::string>& rest) {
      std::vector<std::string> dimensions = {"run", "time"};
      dimensions.insert(dimensions.end(), rest.begin(), rest.end());
      return file.values(name, dimensions, {run});
    };
    const auto C = read("C", {"feature", "feature2"}), U = read("U", {"attention_head", "feature"}),
               Lambda = read("Lambda", {"attention_head", "other_head"}),
               b = read("b", {"attention_head"}), v = read("v", {}), loss = read("loss", {}),
               error = read("loss_error", {});
    const auto matrix = [](const std::vector<double>& all, std::size_t i, Eigen::Index rows,
                           Eigen::Index columns) -> Matrix {
      return Eigen::Map<const Matrix>(all.data() + static_cast<Eigen::Index>(i) * rows * columns,
                                      rows, columns);
    };
    for (std::size_t i = 0; i < outputs; ++i) {
      SgdRecord record;
      record.state = {matrix(C, i, F, F), matrix(U, i, H, F), matrix(Lambda, i, H, H),
                      matrix(b, i, 1, H).transpose(), v[i]};
      record.loss = {loss[i], error[i]};
      out.recorded[run].push_back(std::move(record));
    }
  }
  return out;
}

}  // namespace headflow
