// Where a flow starts, with remarks on what was given and is not taken.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "io/recorded_start.h"

namespace headflow::cli {
namespace {

bool has_block(const Config& config, const std::string& name) {
  const std::vector<BlockInfo> blocks = find_activation(config.problem.activation)->blocks();
  return std::ranges::any_of(blocks, [&](const BlockInfo& one) { return one.name == name; });
}

/// What was given of a start that is not taken, and what is added to it.
std::vector<std::string> remarks_on_start(const Invocation& call) {
  const Config& config = call.config;
  const bool from_file = !config.flow.init_from.empty();
  const auto given = [&](const std::string& key) { return call.origins.given(key); };
  std::vector<std::string> notes;
  for (const Key& key : keys()) {
    if (key.section != "point" || !given(key.full_name())) continue;
    if (!from_file && config.flow.init != FlowInit::noise) continue;
    notes.push_back(
        fmt::format("{} is not used: the flow starts from {}", key.full_name(),
                    from_file ? "the file init_from" : "noise (--init point starts from [point])"));
    break;
  }
  if (from_file && given("problem.p")) {
    notes.emplace_back("problem.p is not used: p is that of the file init_from");
  }
  if (from_file && given("flow.init") && config.flow.init != FlowInit::file) {
    notes.emplace_back("flow.init is not used: the flow starts from the file init_from");
  }
  const bool around = from_file || config.flow.init == FlowInit::point;
  if (around && config.flow.init_noise.value_or(0.0) > 0) {
    notes.push_back(fmt::format("noise of size {:g} is added to the given start (init_noise)",
                                *config.flow.init_noise));
  }
  for (const auto& [name, values] : config.flow.init_blocks) {
    if (has_block(config, name)) continue;
    notes.push_back(fmt::format("flow.init_{} does not matter: {} has no {}", name,
                                config.problem.activation, name));
  }
  return notes;
}

}  // namespace

void note_unused_point(const Invocation& call) {
  const Config& config = call.config;
  for (const auto& [name, values] : config.point.blocks) {
    const std::string key = "point." + name;
    if (has_block(config, name) || !call.origins.flag(key)) continue;
    print_note(
        fmt::format("{} does not matter: {} has no {}", key, config.problem.activation, name),
        call.quiet);
  }
}

void settle_start(Invocation& call) {
  const std::vector<std::string> notes = remarks_on_start(call);
  const RecordedStart start = take_recorded_start(call.config);
  call.taken_from = start.taken_from;
  static_cast<void>(Problem(call.config.problem));  // what is wrong is said alone
  print_note(start.note, call.quiet);
  if (call.taken_from.empty() && call.config.flow.init == FlowInit::point) note_unused_point(call);
  if (call.quiet) return;
  if (!call.taken_from.empty()) fmt::print(stderr, "starting from {}\n", call.taken_from);
  for (const std::string& note : notes) fmt::print(stderr, "headflow: note: {}\n", note);
}

}  // namespace headflow::cli
