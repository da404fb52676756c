#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/watch.h"
#include "io/atomic_file.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

/// A part of the gradient, a row a line.
std::string table(const Quantity& q) {
  const std::string name = q.name.substr(std::string("grad_").size());
  const std::size_t columns = q.dimensions.empty() ? 1 : q.dimensions.back().size;
  const int digits = places(*std::ranges::max_element(q.errors));
  std::string text;
  for (std::size_t i = 0; i < q.values.size(); ++i) {
    if (i % columns == 0) text += fmt::format("{}  {:<3}", i == 0 ? "" : "\n", i == 0 ? name : "");
    text += fmt::format(" {:>{}.{}f} +- {:<9.2g}", q.values[i], 5 + digits, digits, q.errors[i]);
  }
  return text + "\n";
}

void print_loss(const Dataset& result) {
  fmt::print("loss  {:.{}f} +- {:.2g}  ({})\n", result.number("loss"), places(result.error("loss")),
             result.error("loss"), result.text("error_kind"));
  if (result.find("excess_risk")) {
    const Quantity& excess = result["excess_risk"];
    fmt::print("excess risk  {:.6g} +- {:.2g}  ({})\n", excess.values[0], excess.errors[0],
               to_string(excess.error_kinds[0]));
  }
  fmt::print("gradient\n");
  for (const Quantity& q : result.quantities) {
    if (q.name.starts_with("grad_")) fmt::print("{}", table(q));
  }
  const std::string reason = result.text("engine_reason");
  if (!reason.empty()) fmt::print("auto took {}\n", reason);
  fmt::print("engine {}, {} {}, ", result.text("engine"), result.count("engine_samples"),
             result.flag("engine_sampled") ? "samples" : "nodes");
  if (result.flag("engine_sampled")) {
    fmt::print("seed {}", *result.provenance.seed);
  } else {
    fmt::print("tolerance {:g}", result.real("engine_tolerance"));
  }
  fmt::print(", {:.3f} s\n", result.real("seconds"));
}

int run_loss(Invocation& call) {
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  note_unused_point(call);
  Dataset result = [&] {
    const Elapsed elapsed(Progress::detect(call.quiet), "loss: working");
    return compute_loss(call.config, Watched(call, "loss"));
  }();
  note_unused_samples(result, call);
  put_out(call, result);
  if (!call.json) print_loss(result);
  return kSuccess;
}

}  // namespace

const Command& loss_command() {
  static const Command command{
      "loss",
      "loss and gradient at a point",
      "Loss E(m, R, b, v) and its gradient at a point, each number with its error. With problem.p\n"
      "the gradient is with respect to m_hf = k_h . k*_f. With --excess also the excess risk over\n"
      "the Bayes estimator, without the cancellation of a difference of two losses.\n\n"
      "example:\n"
      "  headflow loss point.toml --tolerance 1e-8 --json\n"
      "  headflow loss point.toml --engine mc --samples 100000 --seed 1\n"
      "  headflow loss point.toml --excess 100000\n"
      "where point.toml holds\n"
      "  [problem]\n"
      "  activation = \"softmax\"\n"
      "  prior = \"flipping\"\n"
      "  tokens = 4\n"
      "  heads = 2\n"
      "  features = 2\n"
      "  nu = [2.0, 2.0]\n"
      "  [point]\n"
      "  m = [[1.0, 0.5], [1.0, -0.5]]\n",
      keys_of_command("loss"),
      true,
      nullptr,
      run_loss};
  return command;
}

}  // namespace headflow::cli
