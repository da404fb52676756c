#include <fmt/format.h>

#include "cli/command.h"
#include "cli/python.h"
#include "core/error.h"
#include "io/atomic_file.h"

namespace headflow::cli {
namespace {

int run_plot(Invocation& call) {
  if (call.names.empty()) throw Error("plot needs a result file; headflow plot --help");
  const std::string python = drawing_python();
  if (python.empty()) throw Error(how_to_draw());
  if (call.names.size() > 1 && !call.config.result.output.empty()) {
    throw Error("plot: --output names one picture, but there are several files");
  }
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  catch_interrupts();  // Python is told to stop, too
  if (!call.config.result.output.empty()) remove_leftovers(call.config.result.output);
  int worst = kSuccess;
  for (const std::string& file : call.names) {
    std::vector<std::string> arguments = {file};
    if (!call.config.result.output.empty()) arguments.push_back(call.config.result.output);
    if (call.quiet) arguments.emplace_back("--quiet");
    if (!call.only.empty()) {
      std::string only;
      for (const std::string& name : call.only) only += (only.empty() ? "" : ",") + name;
      arguments.insert(arguments.end(), {"--only", only});
    }
    if (run_module(python, "headflow.plot", arguments) != 0) worst = kBadInput;
  }
  return worst;
}

}  // namespace

const Command& plot_command() {
  static const Command command{
      .name = "plot",
      .summary = "a picture of any result file",
      .description =
          "Draws result files of flow, sgd, compare and sweep: FILE.png beside each file, or the\n"
          "picture that --output names (png, svg or pdf). Needs Python with matplotlib and "
          "xarray.\n\n"
          "example:\n"
          "  headflow plot run.nc --output run.svg\n",
      .sections = {"result.output"},
      .takes_file = false,
      .only = "Only these quantities of a sweep, as in --only loss,bayes",
      .run = run_plot,
      .names = "Result files",
      .prints_json = false,
      .offered_names = [] { return std::vector<std::string>{"*.nc"}; }};
  return command;
}

}  // namespace headflow::cli
