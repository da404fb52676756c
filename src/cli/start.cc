// Where a flow starts, with remarks on what was given and is not taken.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/command.h"

namespace headflow::cli {
namespace {

bool has_block(const Session& session, const std::string& name) {
  const std::vector<BlockInfo> blocks = find_activation(session.problem.activation)->blocks();
  return std::ranges::any_of(blocks, [&](const BlockInfo& one) { return one.name == name; });
}

/// What was given of a start that is not taken, and what is added to it.
std::vector<std::string> remarks_on_start(const Session& session) {
  const bool from_file = !session.flow.init_from.empty();
  const auto given = [&](const std::string& key) { return !session.keys.origin(key).empty(); };
  std::vector<std::string> notes;
  for (const Key& key : session.keys.all()) {
    if (key.section != "point" || !given(key.full_name())) continue;
    if (!from_file && session.flow.init != FlowInit::noise) continue;
    notes.push_back(
        fmt::format("{} is not used: the flow starts from {}", key.full_name(),
                    from_file ? "the file init_from" : "noise (--init point starts from [point])"));
    break;
  }
  if (from_file && given("problem.p")) {
    notes.emplace_back("problem.p is not used: p is that of the file init_from");
  }
  if (from_file && given("flow.init") && session.flow.init != FlowInit::file) {
    notes.emplace_back("flow.init is not used: the flow starts from the file init_from");
  }
  const bool around = from_file || session.flow.init == FlowInit::point;
  if (around && session.flow.init_noise.value_or(0.0) > 0) {
    notes.push_back(fmt::format("noise of size {:g} is added to the given start (init_noise)",
                                *session.flow.init_noise));
  }
  for (const auto& [name, values] : session.flow.init_blocks) {
    if (has_block(session, name)) continue;
    notes.push_back(fmt::format("flow.init_{} does not matter: {} has no {}", name,
                                session.problem.activation, name));
  }
  return notes;
}

}  // namespace

void note_unused_point(const Session& session, bool quiet) {
  for (const auto& [name, values] : session.point.blocks) {
    const std::string key = "point." + name;
    if (has_block(session, name) || !session.keys.origin(key).starts_with("--")) continue;
    print_note(
        fmt::format("{} does not matter: {} has no {}", key, session.problem.activation, name),
        quiet);
  }
}

void settle_start(Session& session, bool quiet) {
  const std::vector<std::string> notes = remarks_on_start(session);
  const std::string note = session.take_recorded_start();
  static_cast<void>(Problem(session.problem));  // what is wrong is said alone
  print_note(note, quiet);
  if (session.taken_from.empty() && session.flow.init == FlowInit::point)
    note_unused_point(session, quiet);
  if (quiet) return;
  if (!session.taken_from.empty()) fmt::print(stderr, "starting from {}\n", session.taken_from);
  for (const std::string& note : notes) fmt::print(stderr, "headflow: note: {}\n", note);
}

}  // namespace headflow::cli
