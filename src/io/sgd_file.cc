#include "io/sgd_file.h"

#include <numeric>

#include "io/netcdf_file.h"

namespace headflow {
namespace {

void append_values(std::vector<double>& out, const Matrix& values) {
  out.insert(out.end(), values.data(), values.data() + values.size());
}

template <class Value>
std::vector<double> collect_records(const std::vector<std::vector<SgdRecord>>& recorded,
                                    const Value& value) {
  std::vector<double> out;
  for (const auto& run : recorded) {
    for (const SgdRecord& record : run) append_values(out, value(record));
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
                collect_records(recorded, [](const SgdRecord& r) { return r.state.m(); }),
                described("overlap of a head with a hidden direction, k_h . k*_f"));
  file.variable("q", {"run", "time", "attention_head", "other_head"},
                collect_records(recorded, [](const SgdRecord& r) { return r.state.q(); }),
                described("overlap of two heads, k_h . k_h'"));
  std::vector<double> p;
  for (const auto& run : recorded) append_values(p, run.front().state.p());
  file.variable("p", {"run", "feature", "feature2"}, p,
                described("overlap of two hidden directions, k*_f . k*_f'"));
  file.variable("R", {"run", "time", "attention_head", "other_head"},
                collect_records(recorded, [](const SgdRecord& r) { return r.state.Lambda; }),
                described("lower triangular, R R^T = q - m p^-1 m^T"));
  std::vector<const Blocks*> blocks;
  for (const auto& run : recorded) {
    for (const SgdRecord& record : run) blocks.push_back(&record.state.blocks);
  }
  write_blocks(file, problem, {"run", "time"}, blocks);
  file.variable("batch_loss", {"run", "time"},
                collect_records(recorded, [](const SgdRecord& r) { return number(r.loss.mean); }),
                with_error("loss of the batch that is drawn at this time", "batch_loss_error"));
  file.variable("batch_loss_error", {"run", "time"},
                collect_records(recorded, [](const SgdRecord& r) { return number(r.loss.error); }),
                error_of("error of the loss of a batch", "standard error"));
  if (!population.loss.empty()) {
    file.variable("loss", {"run", "time"}, flat(population.loss),
                  with_error("population loss in the limit of large D", "loss_error"));
    file.variable(
        "loss_error", {"run", "time"}, flat(population.error),
        error_of("error of the population loss", std::string(to_string(population.error_kind))));
    file.attribute("engine", population.engine);
  }
  file.attribute("method", std::string(to_string(options.method)));
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

}  // namespace headflow
