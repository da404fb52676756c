#include "sweep/sweep.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/sweep_progress.h"
#include "core/error.h"
#include "io/result_json.h"

namespace headflow::cli {
namespace {

int run_sweep(Invocation& call) {
  if (call.file.empty()) {
    throw Error("sweep needs a configuration file with a table [sweep]; headflow sweep --help");
  }
  SweepJob job;
  job.file = read_sweep_file(call.file, call.flags, call.origins);
  const std::string output = job.output = job.file.base.result.output;
  if (output.empty()) throw Error("sweep needs --output RESULT.nc");
  check_apart(output, call.file);
  const int threads = checked_threads(job.file.base.program.threads);
  job.command_line = call.command_line;
  const SweepOutcome outcome =
      sweep_with_progress({std::move(job)}, threads, "sweep", call.quiet).front();
  const bool whole = outcome.state() != SweepState::interrupted;
  if (call.json) {
    Dataset out{"headflow-sweep-outcome", "headflow: outcome of a sweep", {}, {}, {}};
    out.provenance = {outcome.configuration, call.command_line, {}};
    for (const auto& [name, count] : {std::pair{"tasks", outcome.tasks},
                                      {"done", outcome.done},
                                      {"kept", outcome.kept},
                                      {"diverged", outcome.diverged}}) {
      out.set(name, static_cast<std::int64_t>(count));
    }
    out.set("output", whole ? output : "");
    fmt::print("{}\n", json_text(out));
  }
  if (!call.quiet) {
    if (outcome.up_to_date) {
      fmt::print(stderr, "{}: up to date\n", output);
    } else if (whole) {
      fmt::print(stderr, "{} tasks ({} from an earlier run); wrote {}\n", outcome.tasks,
                 outcome.kept, output);
    } else {
      fmt::print(stderr,
                 "interrupted after {} of {} tasks; the same command goes on with the rest\n",
                 outcome.done, outcome.tasks);
    }
  }
  if (outcome.diverged > 0) {
    fmt::print(stderr,
               "headflow: training diverged in {} of {} tasks (the variable diverged tells which): "
               "their ends are unknown; take a smaller flow.step or sgd.lr\n",
               outcome.diverged, outcome.tasks);
  }
  if (!whole) return kInterrupted;
  return outcome.diverged > 0 ? kDiverged : kSuccess;
}

}  // namespace

const Command& sweep_command() {
  static const std::string description =
      "Runs a configuration over axes of any of its keys (lists, ranges, linspace, logspace; keys\n"
      "that vary together; seeds) and writes what is measured into one file whose dimensions are\n"
      "the axes. Finished tasks are kept in OUTPUT.tasks, by what they compute: the same command\n"
      "goes on where it was stopped, and one with more values computes what is new. Remove the\n"
      "folder when the sweep will not grow. Tasks run in parallel; the numbers do not depend on "
      "it.\n\n"
      "  [sweep]\n"
      "  measure = [\"end\", \"bayes\"]   # of " +
      fmt::format("{}", fmt::join(names_of<Measure>(), ", ")) +
      "\n"
      "  [[sweep.axis]]\n"
      "  key = \"problem.heads\"\n"
      "  range = [1, 6]\n"
      "  [[sweep.axis]]\n"
      "  name = \"prior\"\n"
      "  keys = [\"problem.prior\", \"problem.nu\"]\n"
      "  values = [[\"flipping\", 10.0], [\"gaussian\", 5.0]]\n"
      "  [[sweep.axis]]\n"
      "  key = \"run.seed\"\n"
      "  range = [1, 5]\n\n"
      "A key of a list takes an index: problem.nu[2].\n\n"
      "example:\n"
      "  headflow sweep configs/sweep.toml --output sweep.nc\n";
  static const Command command{"sweep",
                               "many tasks over axes of any keys, into one file",
                               description.c_str(),
                               {"problem", "point", "run", "loss", "flow", "end", "sgd", "compare",
                                "result.output", "program"},
                               true,
                               nullptr,
                               run_sweep,
                               nullptr,
                               true,
                               nullptr,
                               true};
  return command;
}

}  // namespace headflow::cli
