#include "study/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {

namespace {

/// A block that another activation has may stand in a configuration; one that none has is a
/// mistake.
void check_block_name(const Problem& problem, const std::string& name, const Matrix& values,
                      const std::string& where) {
  if (problem.layout()->find(name)) return;
  std::vector<std::string> known;
  for (const auto& activation : activations()) {
    for (const BlockInfo& block : activation->blocks()) {
      if (block.name == name) return;
      if (std::ranges::count(known, where + block.name) == 0) known.push_back(where + block.name);
    }
  }
  throw OptionError(
      where + name, parameter_text(values),
      fmt::format("is a block of no activation; there are {}", fmt::join(known, ", ")));
}

}  // namespace

Point PointOptions::make(const Problem& problem) const {
  Point out = problem.start_point();
  if (m) out.m = *m;
  if (R) out.R = *R;
  for (const auto& [name, values] : blocks) check_block_name(problem, name, values, "point.");
  for (const BlockLayout::Entry& e : problem.layout()->entries()) {
    const auto given = blocks.find(e.info.name);
    if (given == blocks.end()) continue;
    const Matrix& values = given->second;
    if (values.size() != e.size || (e.shape.size() < 2 && values.rows() != 1)) {
      throw OptionError(
          "point." + e.info.name, parameter_text(values),
          e.size == 1 ? "must be one number" : fmt::format("must be a list of {} numbers", e.size));
    }
    out.blocks[e.info.name] = Eigen::Map<const Vector>(values.data(), values.size());
  }
  problem.check(out);
  return problem.frame().enter(std::move(out));
}

void LossOptions::check(const Problem& problem) const {
  if (excess == 0) return;
  const std::string value = fmt::format("{}", excess);
  if (excess < 2 || excess > 1'000'000'000'000) {
    throw OptionError("loss.excess", value,
                      "must be 0 (no excess risk), or from 2 (an error needs two) to 10^12");
  }
  if (!problem.prior().mixture()) {
    throw OptionError("loss.excess", value,
                      "needs a prior that is a mixture of Gaussians and atoms: of this one the "
                      "posterior is not known");
  }
}

void EndOptions::check() const {
  if (!(gradient > 0)) {
    throw OptionError("end.gradient", fmt::format("{}", gradient), "must be positive");
  }
}

void check_start_was_read(const Config& config) {
  if (config.flow.init_from.empty()) return;
  throw OptionError("flow.init_from", in_quotes(config.flow.init_from),
                    "is still to be read: take_recorded_start does that");
}

Point flow_start(const Config& config, const Problem& problem) {
  const FlowOptions& flow = config.flow;
  check_start_was_read(config);
  Point start =
      flow.init == FlowInit::noise ? PointOptions().make(problem) : config.point.make(problem);
  if (flow.noise() > 0) start = noisy(std::move(start), flow.noise(), config.run.seed);
  for (const auto& [name, values] : flow.init_blocks) {
    check_block_name(problem, name, values, "flow.init_");
  }
  for (const BlockLayout::Entry& e : problem.layout()->entries()) {
    const auto given = flow.init_blocks.find(e.info.name);
    if (given == flow.init_blocks.end()) continue;
    const Matrix& values = given->second;
    if (values.rows() != 1 || (values.cols() != 1 && values.cols() != e.size)) {
      throw OptionError(
          "flow.init_" + e.info.name, parameter_text(values),
          e.size == 1 ? "must be one number" : fmt::format("must be one number, or {}", e.size));
    }
    for (Eigen::Index i = 0; i < e.size; ++i) {
      start.blocks[e.info.name][i] = values(0, values.cols() == 1 ? 0 : i);
    }
  }
  problem.check(start);
  return start;
}

std::vector<SgdState> sgd_starts(const Config& config, const Problem& without_overlaps) {
  if (config.sgd.init == SgdInit::law) {
    if (config.problem.p) {
      throw OptionError("problem.p", parameter_text(*config.problem.p),
                        "is drawn with the start of SGD; give a start with sgd.init = \"point\"");
    }
    return Sgd::starts(without_overlaps, config.sgd, config.run.seed);
  }
  const Problem given = without_overlaps.with_overlaps(config.problem.p);
  const SgdState start = state_with(given.p(), given.frame().leave(config.point.make(given)));
  return {static_cast<std::size_t>(config.sgd.runs), start};
}

}  // namespace headflow
