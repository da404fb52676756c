#include "expectation/factorised/factorised.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/index.h"
#include "core/tolerance.h"

namespace headflow {

using factorised::LossAndGradient;
using factorised::Parameters;
using factorised::Quadrature;

namespace {

constexpr double kSafety = 2.0;       // of the difference to a finer rule
constexpr double kExtraDigits = 4.0;  // how much finer (natural logarithm)
constexpr double kRounding = 2e-14;
constexpr double kFewestDigits = 3.0;
constexpr int kMostAttempts = 6;
constexpr double kGrowth = 0.5;     // digits more than were enough elsewhere
constexpr double kMostSpare = 3.0;  // digits that are given back if they turn out not to be needed
constexpr double kMostAdapting = 2 * factorised::kMostWork;
constexpr double kDigitsOfPath = 13;  // what quasi-random nodes reach in most places
constexpr double kNarrow = 3e-6;      // a tolerance that they do not reach
constexpr int kFinerPath = 2;         // twice that many bits: four times the nodes
constexpr double kPathRate = 0.7;     // N^-0.7
constexpr double kPathSafety = 2.5;   // of the difference to four times the nodes
constexpr double kStillServes = 1.5;  // times the tolerance, for nodes that were placed elsewhere
constexpr double kMargin = 0.5;       // of the tolerance, for what is left: the point will move

const GaussianMixture& mixture(const Problem& problem) {
  const std::string reason = Factorised::why_not(problem);
  if (!reason.empty()) {
    throw OptionError("run.engine", "\"factorised\"",
                      fmt::format("cannot be used: {}; use \"qmc\" or \"mc\"", reason));
  }
  return *problem.prior().mixture();
}

/// Where the blocks are that a factorisation names.
factorised::Roles roles(const Problem& problem) {
  const auto offset = [&](const std::string& name) {
    const BlockLayout::Entry* entry = name.empty() ? nullptr : problem.layout()->find(name);
    return entry ? static_cast<int>(entry->offset) : -1;
  };
  struct Visitor {
    const decltype(offset)& at;
    factorised::Roles operator()(std::monostate) const { return {}; }
    factorised::Roles operator()(const NormalisedHeads& f) const {
      return {at(f.sink), at(f.scale)};
    }
    factorised::Roles operator()(const JointlyNormalised& f) const { return {at(f.bias), -1}; }
    factorised::Roles operator()(const Elementwise&) const { return {}; }
  };
  return std::visit(Visitor{offset}, problem.activation().factorisation());
}

Parameters<double> parameters(const Point& point) {
  Parameters<double> out;
  out.H = point.heads();
  out.F = point.features();
  out.m.assign(point.m.data(), point.m.data() + point.m.size());
  out.R.assign(point.R.data(), point.R.data() + point.R.size());
  out.blocks.assign(point.blocks.data(), point.blocks.data() + point.blocks.size());
  return out;
}

Parameters<Dual> with_tangent(const Point& point, const Point& direction) {
  const Parameters<double> x = parameters(point), d = parameters(direction);
  Parameters<Dual> out;
  out.H = x.H;
  out.F = x.F;
  const auto zip = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<Dual> both;
    for (std::size_t i = 0; i < a.size(); ++i) both.emplace_back(a[i], b[i]);
    return both;
  };
  out.m = zip(x.m, d.m);
  out.R = zip(x.R, d.R);
  out.blocks = zip(x.blocks, d.blocks);
  return out;
}

template <class S, class Part>
void to_point(const Parameters<S>& from, const Part& part, Point& out) {
  const auto fill = [&](const std::vector<S>& values, double* to) {
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = part(values[i]);
  };
  fill(from.m, out.m.data());
  fill(from.R, out.R.data());
  fill(from.blocks, out.blocks.data());
}

double largest_difference(const Point& a, const Point& b) {
  return (a.packed() - b.packed()).cwiseAbs().maxCoeff();
}

}  // namespace

std::string Factorised::why_not(const Problem& problem) {
  const Activation& activation = problem.activation();
  if (std::holds_alternative<std::monostate>(activation.factorisation())) {
    return fmt::format("the activation {} does not factorise over tokens", activation.name());
  }
  if (!activation.smooth()) {  // its second derivatives, which Price's theorem takes
    return fmt::format("the activation {} has kinks", activation.name());
  }
  if (!problem.prior().mixture()) {
    return "the prior is no mixture of Gaussians and atoms";
  }
  return "";
}

Factorised::Factorised(const Problem& problem, const EngineOptions& options, const Context& context)
    : Engine(problem),
      tolerance_(options.tolerance),
      joint_(std::holds_alternative<JointlyNormalised>(problem.activation().factorisation())),
      workers_(context),
      signal_(mixture(this->problem())),
      shape_{problem.L(), problem.H(), roles(problem), &signal_, &workers_, factorised::kMostWork} {
  const Factorisation how = problem.activation().factorisation();
  if (const auto* elementwise = std::get_if<Elementwise>(&how)) element_ = elementwise->function;
  check_tolerance(tolerance_);
}

std::unique_ptr<Quadrature> Factorised::plan(const Parameters<double>& point, double digits) const {
  factorised::TokenLaws<double> laws;
  factorised::token_laws(signal_, point, laws);
  workers_.check_go_on();
  const auto finite = [](const std::vector<double>& x) {
    return std::all_of(x.begin(), x.end(), [](double y) { return std::isfinite(y); });
  };
  if (!finite(laws.Q) || !finite(laws.mu)) return nullptr;
  factorised::QuadratureProblem shape = shape_;
  shape.most_work = std::min(shape_.most_work, kMostAdapting - spent_);
  // Quasi-random nodes (adapt_path) are soon the cheaper ones where the tolerance is wide.
  if (joint_) {
    const double wide = std::pow(kNarrow / tolerance_, 3);
    shape.most_work = std::min(shape.most_work, std::clamp(wide * factorised::kMostWork, 1e6, 4e8));
  }
  const auto make = joint_ ? factorised::joint_quadrature : factorised::heads_quadrature;
  return factorised::by_laws(
      shape_, element_ ? factorised::elementwise_quadrature(shape, element_, laws, digits)
                       : make(shape, laws, point.blocks, digits));
}

void Factorised::run(Quadrature& quadrature, const Parameters<double>& point, bool with_defect,
                     double& loss, Point& grad) {
  quadrature.evaluate(point, with_defect, result_);
  loss = result_.loss;
  grad = problem().zero_point();
  to_point(
      result_.grad, [](double x) { return x; }, grad);
}

double Factorised::gradient_scale(const Parameters<double>& point) const {
  // |dE/dm| <= sum_c |dE/dmu_c| |mean_c| + 2 |dE/dQ_c| |m| |I + Sigma_c|, and likewise for R.
  double m = 0, R = 0, out = 1;
  for (const double x : point.m) m = std::max(m, std::abs(x));
  for (const double x : point.R) R = std::max(R, std::abs(x));
  for (int c = 0; c < signal_.count(); ++c) {
    const auto i = static_cast<std::size_t>(c);
    out = std::max({out, signal_.mean[i].cwiseAbs().maxCoeff(),
                    2 * m * signal_.second[i].cwiseAbs().maxCoeff()});
  }
  return std::max(out, 2 * R);
}

Factorised::Values Factorised::values(Quadrature& quadrature, bool with_defect) {
  Values out;
  spent_ += static_cast<double>(quadrature.nodes());
  run(quadrature, here_, with_defect, out.loss, out.grad);
  out.bars = result_.bars;
  out.defect = with_defect ? result_.defect * gradient_scale(here_) : 0.0;
  return out;
}

/// Of the first from the second, better one, whose defect counts. Infinite if not finite.
double Factorised::difference(const Values& a, const Values& b) {
  double out = std::max(std::abs(a.loss - b.loss), largest_difference(a.grad, b.grad));
  if (!std::isfinite(out) || !std::isfinite(b.defect)) return HUGE_VAL;
  out += b.defect;
  for (std::size_t i = 0; i < a.bars.size(); ++i) {
    out = std::max(out, std::abs(a.bars[i] - b.bars[i]));
  }
  return out;
}

bool Factorised::plan_both(double digits) {
  std::unique_ptr<Quadrature> nodes = plan(here_, digits), finer;
  for (const double extra : {kExtraDigits, kExtraDigits / 2}) {
    if (nodes && !finer) finer = plan(here_, digits + extra);
  }
  if (!finer) return false;
  nodes_ = std::move(nodes);
  finer_ = std::move(finer);
  return true;
}

void Factorised::adapt(const Point& point) {
  digits_ = 0;  // nodes that are asked for depend on the point alone
  place_nodes(point);
}

void Factorised::place_nodes(const Point& point) {
  here_ = parameters(point);
  spent_ = 0;
  on_path_ = false;
  factorised::token_laws(signal_, here_, adapted_laws_);
  adapted_blocks_ = here_.blocks;
  const double error = adapt_laws();
  if (joint_ && error > tolerance_) adapt_path(error);
}

/// The error that is left; infinite if there are no nodes, or nobody looked.
double Factorised::adapt_laws() {
  // The planned digits are a guess that is checked: refine until two rules agree. Where that takes
  // too many nodes, the finest rules that do not are the best there is.
  // For heads, what was enough the last time is a better guess.
  const bool known = digits_ > 0 && !joint_;
  double digits = known ? digits_ + kGrowth : std::log(1 / tolerance_) + 1.5;
  if (!plan_both(digits)) {
    if (joint_ && (digits <= kDigitsOfPath || !plan_both(kDigitsOfPath))) return HUGE_VAL;
    double low = joint_ ? kDigitsOfPath : kFewestDigits;
    if (!joint_ && !plan_both(low)) return HUGE_VAL;
    for (double high = digits; high - low > 1.0;) {
      const double half = (low + high) / 2;
      (plan_both(half) ? low : high) = half;
    }
    if (!joint_) return HUGE_VAL;
    const Values best = values(*finer_, true);
    return kSafety * difference(values(*nodes_, false), best) + kRounding;
  }
  double error = HUGE_VAL;
  for (int attempt = 1; attempt <= kMostAttempts; ++attempt) {
    const Values best = values(*finer_, true);
    error = kSafety * difference(values(*nodes_, false), best) + kRounding;
    if (error <= tolerance_) {
      digits_ = digits;
      const double spare = std::min(kMostSpare, std::log(kMargin * tolerance_ / error));
      for (const double part : {1.0, 0.9, 0.8, 0.65, 0.5}) {
        if (spare < (known ? 2 * kGrowth : 0.0) || !coarsen(digits - part * spare, best)) continue;
        digits_ = digits - part * spare;
        break;
      }
      return error;
    }
    const double step = known && attempt == 1 ? 2 * kGrowth : kExtraDigits / 2 * attempt;
    if (!plan_both(digits + step) && !plan_both(digits + step / 2)) return error;
    digits += step;
  }
  return error;
}

std::unique_ptr<Quadrature> Factorised::path(int log2_nodes) const {
  return factorised::token_path(shape_, path_nodes_, here_, log2_nodes);
}

/// Quasi-random nodes, as few as the tolerance allows; the finer rule has four times as many.
void Factorised::adapt_path(double error_by_laws) {
  using factorised::kFewestPathNodes;
  const int F = problem().F(), most = factorised::most_path_nodes(shape_, F) - kFinerPath;
  if (most < kFewestPathNodes) {  // a prior with very many components
    if (std::isinf(error_by_laws)) nodes_.reset(), finer_.reset();
    return;
  }
  if (!path_nodes_) path_nodes_ = std::make_shared<factorised::TokenNodes>(F + problem().H());
  std::map<int, Values> known;
  const auto known_at = [&](int log2) -> const Values& {
    workers_.check_go_on();
    if (!known.contains(log2)) known.emplace(log2, values(*path(log2), true));
    return known.at(log2);
  };
  const auto error_of = [&](int log2) {
    return kPathSafety * difference(known_at(log2), known_at(log2 + kFinerPath)) + kRounding;
  };
  int log2 = std::clamp(path_size_, kFewestPathNodes, most);
  double error = error_of(log2);
  while (error > tolerance_ && log2 < most && std::isfinite(error)) {
    const double bits = std::log2(error / tolerance_) / kPathRate;
    log2 = std::min(most, log2 + std::clamp(static_cast<int>(std::ceil(bits)), 1, 4));
    error = error_of(log2);
  }
  while (error <= tolerance_ && log2 > kFewestPathNodes && error_of(log2 - 1) <= tolerance_) {
    error = error_of(--log2);
  }
  const bool better = error < error_by_laws;
  if (!better && std::isfinite(error_by_laws)) return;
  path_size_ = log2;
  on_path_ = better;
  nodes_ = better ? path(log2) : nullptr;  // what there was is for another point
  finer_ = better ? path(log2 + kFinerPath) : nullptr;
}

/// True if nodes that were placed elsewhere serve here, too, which costs less to see than to place
/// others, and spares the loss a jump by its error. Quasi-random ones are nodes of a normal law,
/// good everywhere, and may err by a little more. Those of heads should not be far too many. Tensor
/// products become so much cheaper as scores lose dimensions that they are always placed anew.
bool Factorised::still_serve(const Parameters<double>& point) {
  if (!nodes_ || !finer_ || (joint_ && !on_path_)) return false;
  here_ = point;
  const Values best = values(*finer_, true);
  const double safety = on_path_ ? kPathSafety : kSafety;
  const double error = safety * difference(values(*nodes_, false), best) + kRounding;
  if (on_path_) return error <= kStillServes * tolerance_;
  return error <= tolerance_ && error >= kMargin * std::exp(-kMostSpare) * tolerance_;
}

bool Factorised::coarsen(double digits, const Values& best) {
  std::unique_ptr<Quadrature> nodes = plan(here_, digits), finer;
  if (!nodes || static_cast<double>(nodes->nodes()) > 0.9 * static_cast<double>(nodes_->nodes())) {
    return false;
  }
  finer = plan(here_, digits + kExtraDigits);
  if (!finer) return false;
  const Values coarse = values(*nodes, false);
  const double most = std::max(difference(coarse, best), difference(coarse, values(*finer, true)));
  if (kSafety * most + kRounding > kMargin * tolerance_) return false;
  nodes_ = std::move(nodes);
  finer_ = std::move(finer);
  return true;
}

bool Factorised::follow(const Point& point) {
  const Parameters<double> now = parameters(point);
  factorised::token_laws(signal_, now, laws_);
  bool moved = !nodes_ || nodes_->unseen_variance(now) > 0.1 * tolerance_;
  const factorised::TokenLaws<double>& then = adapted_laws_;
  const auto bias_moved = [&](int h) {
    if (shape_.roles.bias < 0) return false;
    const std::size_t i = at(shape_.roles.bias + h);
    return std::abs(now.blocks[i] - adapted_blocks_[i]) > 0.2;
  };
  for (int c = 0; c < signal_.count() && !moved; ++c) {
    for (int h = 0; h < problem().H() && !moved; ++h) {
      const double scale = 0.3 + std::sqrt(std::max(0.0, then.q(c, h, h)));
      moved = std::abs(laws_.mean(c, h) - then.mean(c, h)) > 0.15 * scale || bias_moved(h);
      for (int k = 0; k <= h && !moved; ++k) {
        const double other = 0.3 + std::sqrt(std::max(0.0, then.q(c, k, k)));
        moved = std::abs(laws_.q(c, h, k) - then.q(c, h, k)) > 0.15 * scale * other;
      }
    }
  }
  if (moved && !still_serve(now)) {
    place_nodes(point);
    return true;
  }
  if (on_path_) {
    nodes_->recentre(now);
    finer_->recentre(now);
  }
  if (moved) {
    adapted_laws_ = laws_;
    adapted_blocks_ = now.blocks;
  }
  return false;
}

void Factorised::ensure_adapted(const Point& point) {
  workers_.check_go_on();
  problem().check(point);
  if (!nodes_) adapt(point);
  if (!nodes_) {
    throw Error(
        "the factorised engine needs too many nodes at this point (very large scores): raise "
        "run.tolerance, or use run.engine = \"qmc\" or \"mc\"");
  }
}

void Factorised::evaluate(const Point& point, const Request& request, Evaluation& out) {
  if (request.second_moment) {
    throw OptionError("run.engine", "\"factorised\"",
                      "has no second moments of the gradient, which flow.kappa needs; use \"mc\"");
  }
  ensure_adapted(point);
  here_ = parameters(point);
  run(*nodes_, here_, false, out.loss, out.grad);
  out.loss_error = 0;
  check_finite(out);
  if (!request.loss_error && !request.gradient_error) return;
  double loss = 0;
  Point grad;
  run(*finer_, here_, true, loss, grad);
  const double in_grad = largest_difference(grad, out.grad);
  const double safety = on_path_ ? kPathSafety : kSafety;
  const double least = nodes_->unseen_variance(here_) + kRounding;
  // A finer rule that misses a sum rule is no witness, however well the two agree.
  out.loss_error =
      safety * (std::max(std::abs(loss - out.loss), 0.1 * in_grad) + result_.defect) + least;
  check_finite(out);
  if (!request.gradient_error) return;
  const double each = safety * (std::max(in_grad, 0.1 * std::abs(loss - out.loss)) +
                                result_.defect * gradient_scale(here_)) +
                      least;
  out.grad_error = problem().zero_point();
  out.grad_error.m.setConstant(each);
  out.grad_error.R.setConstant(each);
  out.grad_error.blocks.values().setConstant(each);
  check_finite(out);
}

bool Factorised::hessian(const Point& point, Matrix& out, Matrix* change) {
  ensure_adapted(point);
  here_ = parameters(point);
  if (!nodes_->hessian(here_, out)) return false;
  if (change) change->resize(0, 0);
  if (change && on_path_) {
    path(path_size_ - kFinerPath)->hessian(here_, *change);
    *change = out - *change;
  }
  if (!out.allFinite()) {
    throw NotFinite("the Hessian is not finite at this point: numbers overflow");
  }
  return true;
}

void Factorised::hessian_product(const Point& point, const Point& direction, Point& out) {
  ensure_adapted(point);
  if (!nodes_->has_tangents()) return Engine::hessian_product(point, direction, out);
  LossAndGradient<Dual> result;
  nodes_->evaluate(with_tangent(point, direction), result);
  out = problem().zero_point();
  to_point(
      result.grad, [](const Dual& x) { return x.tangent; }, out);
  if (!out.all_finite()) {
    throw NotFinite("the Hessian is not finite at this point: numbers overflow");
  }
}

}  // namespace headflow
