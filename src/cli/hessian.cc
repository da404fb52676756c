#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/atomic_file.h"
#include "io/recorded_start.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

void print_spectrum(const Dataset& result) {
  const Quantity &value = result["eigenvalue"], &times = result["multiplicity"],
                 &mode = result["mode"], *closed_form = result.find("closed_form");
  const double error = result.real("error");
  const int digits = std::min(9, places(error));
  fmt::print("{:>16}  {:>5}  {:<44}{}\n", "eigenvalue", "times", "eigenvectors",
             closed_form ? "  closed form" : "");
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    const double here = std::abs(value.values[i]) <= error ? 0.0 : value.values[i];
    const double closed = closed_form ? closed_form->values[i] : std::nan("");
    fmt::print("{:>16.{}f}  {:>5}  {}\n", here, digits, times.values[i],
               std::isnan(closed) ? mode.texts[i]
                                  : fmt::format("{:<44}  {:>14.9f}", mode.texts[i], closed + 0.0));
  }
}

void print_hessian(const Dataset& result, const std::string& at) {
  fmt::print("at {}, loss {:.9f}\n", at, result.number("loss"));
  print_point(result);
  print_spectrum(result);
  const double error = result.real("error"), gradient = result.number("gradient_norm");
  fmt::print("error of an entry {:.2g} ({}), engine {}\n", error, result.text("error_kind"),
             result.text("engine"));
  if (gradient > 1e-6 + 10 * error) {
    fmt::print(
        "the gradient is not zero here (norm {:.3g}): the flow moves on, whatever the curvature\n",
        gradient);
  }
  const double rate = result.real("escape_rate"), time = result.real("specialisation_time");
  if (std::isnan(time)) {
    fmt::print("no direction of negative curvature beyond ten errors\n");
    return;
  }
  fmt::print(
      "unstable: differences grow as e^({:.5g} tau); from D^(-1/2) at D = {:g} they are of order "
      "one after tau = log(D) / (2 x {:.5g}) = {:.4g}\n",
      rate, static_cast<double>(result.count("dim")), rate, time);
}

int run_hessian(Invocation& call) {
  Config& config = call.config;
  if (!config.result.output.empty()) check_writable(config.result.output);
  const bool from_file = !config.flow.init_from.empty();
  for (const Key& key : keys()) {
    if (key.section != "point" || !call.origins.flag(key.full_name())) continue;
    if (config.hessian.at == HessianAt::point && !from_file) continue;
    throw Error(fmt::format("{} is not used: the point is {}", key.full_name(),
                            config.hessian.at != HessianAt::point
                                ? "hessian.at = " + in_quotes(config.hessian.at)
                                : "that of flow.init_from"));
  }
  if (config.hessian.at == HessianAt::point) {
    if (!from_file) note_unused_point(call);
    config.flow.check_start();
    const RecordedStart start = take_recorded_start(config);
    call.taken_from = start.taken_from;
    print_note(start.note, call.quiet);
  } else if (call.origins.flag("flow.init_from")) {
    throw OptionError("hessian.at", in_quotes(config.hessian.at),
                      "and flow.init_from are two different points; give one of them");
  }
  Dataset result = [&] {
    const Elapsed elapsed(Progress::detect(call.quiet), "hessian: working");
    return compute_hessian(config, Watched(call, "hessian"));
  }();
  const std::string at = result.text("at");
  if (!call.taken_from.empty()) result.set("at", call.taken_from);
  put_out(call, result);
  if (!call.json) print_hessian(result, call.taken_from.empty() ? "the " + at : call.taken_from);
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
      "  headflow hessian configs/flow.toml --at saddle --dim 10000\n"
      "  headflow hessian configs/flow.toml --init-from run.nc --init-time 40\n",
      keys_of_command("hessian"),
      true,
      nullptr,
      run_hessian};
  return command;
}

}  // namespace headflow::cli
