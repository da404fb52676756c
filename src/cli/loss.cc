#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/watch.h"
#include "core/error.h"
#include "expectation/check_engine.h"

namespace headflow::cli {
namespace {

/// Decimal places worth printing for a number with this error.
int digits(double error) {
  return error > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(error))) + 1, 2, 13) : 6;
}

std::string table(const char* name, const Matrix& value, const Matrix& error) {
  std::string text;
  const int places = digits(error.maxCoeff());
  for (Eigen::Index i = 0; i < value.rows(); ++i) {
    text += fmt::format("  {:<3}", i == 0 ? name : "");
    for (Eigen::Index j = 0; j < value.cols(); ++j) {
      text += fmt::format(" {:>{}.{}f} +- {:<9.2g}", value(i, j), 5 + places, places, error(i, j));
    }
    text += "\n";
  }
  return text;
}

/// Samples that all but agree say nothing of what is rarer than they are.
void note_unseen(const Engine& engine, const Evaluation& result, bool quiet) {
  constexpr double kUnseen = 3;  // times 1/N: a probability that N samples do not show
  const double unseen = kUnseen / static_cast<double>(engine.samples());
  if (!engine.sampled() || result.loss_error > 1e-3 * unseen) return;
  print_note(
      fmt::format("all {} samples agree: what happens with a probability below {:.1g} is not "
                  "in their error",
                  engine.samples(), unseen),
      quiet);
}

int run_loss(Invocation& call) {
  const Config& config = call.config;
  const Problem problem(config.problem);
  const Point point = config.point.make(problem);
  check_engine(problem, config.run);
  print_notes(problem, call.quiet);
  note_unused_point(call);
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<Engine> engine;
  Evaluation result;
  {
    const Elapsed elapsed(Progress::detect(call.quiet), "loss: working");
    engine = make_engine(problem, config.run, {&point, false}, Watched(call, "loss"));
    engine->evaluate(point, {.gradient_error = true}, result);
  }
  if (!std::isfinite(result.loss) || !result.grad.all_finite()) {
    throw Error(
        "the loss or its gradient is not finite here: the numbers of [problem] and [point] "
        "are too large for doubles");
  }
  const double in_frame = result.grad_error.max();  // what the engine was asked for
  result.grad = problem.frame().leave_gradient(std::move(result.grad));
  result.grad_error = problem.frame().leave_gradient_error(std::move(result.grad_error));
  note_unused_samples(*engine, call);
  note_unseen(*engine, result, call.quiet);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  // A tolerance is a bound: of a standard error two are held against it.
  const bool asked = !engine->sampled() || !engine->reason().empty();
  const double tolerance = config.run.tolerance;
  const double worst = std::max(result.loss_error, in_frame) *
                       (engine->error_kind() == ErrorKind::refinement ? 1.0 : 2.0);
  const bool met = worst <= tolerance;
  if (asked && config.run.samples == 0 && !met && !call.quiet) {
    fmt::print(stderr,
               "headflow: note: the tolerance {:g} is not reached: the largest error is {:.3g}\n",
               tolerance, worst);
  }
  if (call.json) {
    nlohmann::ordered_json out = {{"loss", result.loss},
                                  {"loss_error", result.loss_error},
                                  {"grad", to_json(result.grad)},
                                  {"grad_error", to_json(result.grad_error)},
                                  {"engine", engine->name()},
                                  {"engine_reason", engine->reason()},
                                  {"error_kind", to_string(engine->error_kind())},
                                  {"samples", engine->samples()},
                                  {"seed", config.run.seed},
                                  {"seconds", seconds}};
    if (asked && config.run.samples == 0) {
      out["tolerance"] = tolerance;
      out["tolerance_met"] = met;
    }
    fmt::print("{}\n", json_text(out));
    return kSuccess;
  }
  fmt::print("loss  {:.{}f} +- {:.2g}  ({})\n", result.loss, digits(result.loss_error),
             result.loss_error, to_string(engine->error_kind()));
  fmt::print("gradient\n{}{}", table("m", result.grad.m, result.grad_error.m),
             table("R", result.grad.R, result.grad_error.R));
  for (const BlockLayout::Entry& e : result.grad.blocks.entries()) {
    const std::string& name = e.info.name;
    fmt::print("{}", table(name.c_str(), result.grad[name].transpose(),
                           result.grad_error[name].transpose()));
  }
  if (!engine->reason().empty()) fmt::print("auto took {}\n", engine->reason());
  if (!engine->sampled()) {
    fmt::print("engine {}, {} nodes, tolerance {:g}, {:.3f} s\n", engine->name(), engine->samples(),
               engine->tolerance(), seconds);
  } else {
    fmt::print("engine {}, {} samples, seed {}, {:.3f} s\n", engine->name(), engine->samples(),
               config.run.seed, seconds);
  }
  return kSuccess;
}

}  // namespace

const Command& loss_command() {
  static const Command command{
      "loss",
      "loss and gradient at a point",
      "Loss E(m, R, b, v) and its gradient at a point, each number with its error. With problem.p\n"
      "the gradient is with respect to m_hf = k_h . k*_f.\n\n"
      "example:\n"
      "  headflow loss point.toml --tolerance 1e-8 --json\n"
      "  headflow loss point.toml --engine mc --samples 100000 --seed 1\n"
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
      {"problem", "point", "run", "program"},
      true,
      nullptr,
      run_loss};
  return command;
}

}  // namespace headflow::cli
