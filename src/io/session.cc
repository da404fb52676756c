#include "io/session.h"

#include "core/error.h"
#include "core/suggest.h"
#include "io/recorded_point.h"

namespace headflow {
namespace {

template <class Range>
std::string list_of_names(const Range& range) {
  std::string text;
  for (const auto& name : range) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Point PointOptions::make(const Problem& problem) const {
  Point out = problem.start_point();
  if (m) out.m = *m;
  if (R) out.R = *R;
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

Session::Session() {
  std::vector<std::string> activation_names, prior_names;
  for (const auto& a : activations()) activation_names.emplace_back(a->name());
  for (const PriorInfo* p : priors()) prior_names.emplace_back(p->name);

  keys.add("problem", "activation", problem.activation,
           "normalisation of the attention: " + list_of_names(activation_names));
  keys.add("problem", "prior", problem.prior,
           "law of the feature weights theta: " + list_of_names(prior_names));
  keys.add("problem", "tokens", problem.tokens, "L, tokens of a sequence");
  keys.add("problem", "heads", problem.heads, "H, attention heads");
  keys.add("problem", "features", problem.features, "F, hidden directions");
  keys.add("problem", "eta", problem.eta, "initial norm of a head, k_h ~ N(0, eta^2 I/D)");
  keys.add(
      "problem", "train", problem.train,
      "what is trained, separated by commas: m, R and blocks of the activation (default: all)");
  keys.add("problem", "p", problem.p,
           "overlaps p_ff' = k*_f . k*_f' of the hidden directions, F x F (default: I)");
  std::map<std::string, std::string, std::less<>> parameter_help;
  for (const PriorInfo* prior : priors()) {
    for (const ParameterInfo& parameter : prior->parameters) {
      std::string& help = parameter_help[std::string(parameter.name)];
      if (help.empty()) {
        help = fmt::format("{} (prior {}", parameter.help, prior->name);
      } else {
        help += fmt::format(", {}", prior->name);
      }
    }
  }
  for (const auto& [name, help] : parameter_help) {
    keys.add("problem", name, name, problem.prior_parameters, help + ")");
  }

  keys.add("point", "m", point.m, "overlaps m_hf = k_h . k*_f, H x F (default 0)");
  keys.add("point", "R", point.R, "orthogonal parts R, H x H (default eta I)");
  // Blocks of the activations: what each means, and whose it is.
  std::map<std::string, std::string, std::less<>> block_help;
  for (const auto& a : activations()) {
    for (const BlockInfo& block : a->blocks()) {
      std::string& help = block_help[block.name];
      help += help.empty() ? fmt::format("{} ({}", block.meaning, a->name())
                           : fmt::format(", {}", a->name());
    }
  }
  for (const auto& [name, help] : block_help) {
    keys.add("point", name, name, point.blocks, help + ")");
  }

  keys.add("run", "engine", engine.engine,
           "how expectations are computed: auto (the cheapest that meets the tolerance), "
           "factorised, qmc, mc");
  keys.add("run", "tolerance", engine.tolerance,
           "absolute error asked of the engines auto and factorised, and of bayes: 1e-12 to 0.1");
  keys.add("run", "samples", engine.samples, "samples of mc, points of qmc (0: 100,000)");
  keys.add("run", "randomisations", engine.randomisations, "independent randomisations of qmc");
  keys.add("run", "seed", engine.seed, "seed of every random number");
  keys.add("run", "precision", engine.precision, "storage of the samples: float64 or float32");

  keys.add("flow", "init", flow.init,
           "start from noise (the paper's initial law), point ([point]) or file (init_from)");
  keys.add("flow", "init_noise", flow.init_noise,
           "standard deviation of the noise in m and R at the start (default 0.01; around a point "
           "or a file 0)");
  for (const auto& [name, help] : block_help) {
    keys.add("flow", "init_" + name, name, flow.init_blocks,
             "at the start, one number or all: " + help + ")");
  }
  keys.add("flow", "init_from", flow.init_from,
           "start where a recorded run was: a result file of flow, sgd or compare");
  keys.add("flow", "init_run", flow.init_run, "number of the run in that file, from 1");
  keys.add_text_or_number(
      "flow", "init_time", flow.init_time,
      "time in that file: first, last, or a number (the nearest recorded time is taken)");
  keys.add("flow", "time", flow.time, "stop at this tau");
  keys.add("flow", "gradient_tolerance", flow.gradient_tolerance,
           "stop when the norm of the gradient is below this (0: never)");
  keys.add(
      "flow", "integrator", flow.integrator,
      "euler (fixed step), explicit (adaptive), implicit (adaptive, for long times), map (steps "
      "of SGD at a learning rate of order one) or first-order (adaptive, the map to first order)");
  keys.add("flow", "step", flow.step, "Euler's step; the learning rate of map and first-order");
  keys.add("flow", "rtol", flow.rtol, "relative tolerance of an adaptive step");
  keys.add("flow", "atol", flow.atol, "absolute tolerance of an adaptive step");
  keys.add("flow", "kappa", flow.kappa,
           "learning rate x D / batch size: noise of SGD kept in the limit (0: gradient flow)");
  keys.add("flow", "sampling", flow.sampling,
           "samples fixed for the run, or redrawn at each step of euler or map");
  keys.add("flow", "outputs", flow.outputs, "number of output times besides tau = 0");
  keys.add("flow", "spacing", flow.spacing, "of the output times: linear or log");
  keys.add("flow", "first_output", flow.first_output, "first output time after 0 with log spacing");

  keys.add("sgd", "method", sgd.method,
           "reduced (exact in law, cost independent of D) or direct (vectors of dimension D)");
  keys.add("sgd", "dim", sgd.dim, "D, dimension of a token; at least features + heads");
  keys.add("sgd", "batch", sgd.batch, "fresh samples of a step");
  keys.add("sgd", "lr", sgd.lr, "learning rate gamma");
  keys.add("sgd", "steps", sgd.steps, "number of steps (0: tau / lr)");
  keys.add("sgd", "tau", sgd.tau, "training time lr x steps, used if steps is 0");
  keys.add("sgd", "runs", sgd.runs, "independent runs");
  keys.add("sgd", "first_run", sgd.first_run,
           "number of the first run: more independent runs of the same seed");
  keys.add("sgd", "init", sgd.init,
           "start from law (the exact law of the overlaps at D) or point ([point], problem.p)");
  keys.add("sgd", "outputs", sgd.outputs, "number of output times besides 0");
  keys.add("sgd", "spacing", sgd.spacing, "of the output times: linear or log");
  keys.add(
      "sgd", "loss", sgd.loss,
      "recorded loss: batch, or population (that of the limit of large D, by [run] engine, too)");

  keys.add("hessian", "at", hessian_at,
           "where: point ([point]), origin (m = R = 0, b as given, attention 1/L) or saddle (where "
           "the flow of equal heads ends)");
  keys.add("minima", "starts", starts, "number of starts");
  keys.add("end", "gradient", end_gradient, "norm of the gradient below which training has ended");
  keys.add("end", "search", end_search,
           "newton (past saddles, with the Hessian's signs) or flow (no Hessian; not beyond "
           "flow.time)");
  keys.add(
      "compare", "theory", theory,
      "what SGD is compared with, separated by commas: flow (gradient flow), kappa (the flow "
      "that keeps the noise, kappa = lr dim / batch), first-order (that and the finite steps, to "
      "first order in lr), map (the one-step map)");
  keys.add("compare", "rtol", compare_rtol, "relative tolerance of the flow's steps");
  keys.add("compare", "atol", compare_atol, "absolute tolerance of the flow's steps");

  keys.add("verify", "effort", verify_effort,
           "quick (fewer runs, samples and starts) or full: the same statements");

  keys.add("program", "memory", engine.memory,
           "MiB of samples to keep in memory; beyond, they are made anew, with the same result");
  keys.add("program", "threads", threads, "threads, 0 for all cores; never changes a result");
  keys.add("result", "checkpoint_seconds", checkpoint_seconds,
           "time between two checkpoints of sgd, written beside the result file");
  keys.add("result", "save_init", save_init,
           "file for the start of sgd alone, as flow --init-from reads it");
  keys.add("result", "output", output,
           "result file (netCDF; JSON for verify); for reproduce, a folder; for plot, a picture");
}

std::string Session::take_recorded_start() {
  if (flow.init_from.empty()) {
    flow.init_noise = flow.noise();
    return "";
  }
  ProblemOptions without_p = problem;
  without_p.p.reset();
  static_cast<void>(Problem(without_p));  // its rules come first: the file must fit a good problem
  const RecordedPoint recorded = read_recorded_point(
      flow.init_from, find_activation(problem.activation)->blocks(), flow.init_run, flow.init_time);
  const auto fits = [&](const char* what, int wanted, int there) {
    if (wanted == there) return;
    throw OptionError(
        "flow.init_from", toml_text(flow.init_from),
        fmt::format("has {0} {1}, but problem.{1} = {2}: use --{1} {0} or another file", there,
                    what, wanted));
  };
  fits("heads", problem.heads, static_cast<int>(recorded.m.rows()));
  fits("features", problem.features, static_cast<int>(recorded.m.cols()));
  point.m = recorded.m;
  point.R = recorded.R;
  point.blocks = recorded.blocks;
  problem.p = recorded.p;
  std::string note;
  if (!recorded.verified) {
    note = fmt::format("{} has no checksum: it cannot be told whether it is as it was written",
                       flow.init_from);
  }
  taken_from = fmt::format("{} at tau = {:g}", flow.init_from, recorded.time);
  flow.init = FlowInit::point;
  flow.init_from.clear();
  flow.init_run = 1;
  flow.init_time = "first";
  flow.init_noise = flow.noise();
  return note;
}

void Session::check_end() const {
  if (!(end_gradient > 0)) {
    throw OptionError("end.gradient", fmt::format("{}", end_gradient), "must be positive");
  }
}

Point Session::flow_start(const Problem& checked) const {
  Point start = flow.init == FlowInit::noise ? PointOptions().make(checked) : point.make(checked);
  if (flow.noise() > 0) start = noisy(std::move(start), flow.noise(), engine.seed);
  for (const BlockLayout::Entry& e : checked.layout()->entries()) {
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
  checked.check(start);
  return start;
}

}  // namespace headflow
