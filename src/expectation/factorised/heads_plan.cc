#include "expectation/factorised/heads_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/index.h"
#include "core/log_factorial.h"
#include "expectation/factorised/kernels.h"
#include "expectation/factorised/node_density.h"

namespace headflow::factorised {
namespace {

constexpr int kMostNodesInU = 1 << 16;
constexpr double kMostNodesInScore = 1 << 18;
constexpr int kMostTerms = 4000;  // of Mehler's sum
constexpr int kTooManyTerms = 1 << 20;
constexpr double kMostBytes = 0x1p29;  // of one rule
// Rules serve nearby points, too: a score that has no variance yet may get some, and two scores a
// correlation. What a rule misses there a finer one, of four digits more, must see: none is so
// sure of a term that these digits cost it none.
constexpr double kLeastDeviation = 0.3;
constexpr double kMostDigitsOfTerm = 2.0;

/// -log of the n-th Hermite coefficient of f(u + sigma z), f = exp(-e^t), at its largest: the
/// saddle point of int w^n e^(-sigma^2 w^2 / 2) e^(-pi w / 2) dw, times sigma^n / sqrt(n!).
double decay_of_coefficient(double sigma, int n) {
  const double half_pi = std::numbers::pi / 2, q = std::max(sigma * sigma, 1e-12);
  const double w = 2 * n / (half_pi + std::sqrt(half_pi * half_pi + 4 * q * n));
  return q * w * w / 2 + half_pi * w - n * std::log(std::sqrt(q) * w) + log_factorial(n) / 2;
}

/// Mehler terms for a pair of scores: sum_n rho^n c_n c_n' up to e^(-digits).
int mehler_terms(double sigma, double other, double rho, double digits) {
  const double rate = -std::log(std::clamp(std::abs(rho), 1e-12, 1.0));
  int n = static_cast<int>(std::ceil(digits / kMostDigitsOfTerm));
  while (n < kMostTerms &&
         rate * n + decay_of_coefficient(sigma, n) + decay_of_coefficient(other, n) < digits) {
    n += 1 + n / 16;
  }
  if (n >= kMostTerms) return kTooManyTerms;
  return n + 2;  // the derivatives of f decay later
}

NodeDensity density_of_head(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                            int head, double b, double digits) {
  Rule of_token[2];
  for (int c = 0; c < laws.components; ++c) {
    const double sigma = std::max(deviation(laws.q(c, head, head)), kLeastDeviation),
                 mean = laws.mean(c, head);
    const Rule rule = normal_rule(sigma, digits + 7);
    Rule& law = of_token[c > 0];
    for (int i = 0; i < rule.size(); ++i) {
      law.x.push_back(mean + sigma * rule.x[at(i)]);
      law.w.push_back(problem.signal->weight[at(c)] * rule.w[at(i)]);
    }
  }
  return {problem.L, std::move(of_token[0]), std::move(of_token[1]),
          problem.roles.bias >= 0 ? b : -HUGE_VAL};
}

/// The nodes in u of every head; `scale` measures how far the scores spread, `correlation` how
/// nearly collinear the heads are. The thresholds between the rules are measured. False if there
/// are too many.
bool place_nodes(const QuadratureProblem& problem, const TokenLaws<double>& laws, const double* b,
                 double digits, double scale, double correlation, HeadsPlan& plan) {
  const bool smooth = scale < 0.5 || (scale < 1.1 && correlation < 0.8);
  const int H = problem.H;
  std::vector<Rule> rules;
  for (int h = 0; h < H; ++h) {
    const NodeDensity law = density_of_head(problem, laws, h, b ? b[h] : 0.0, digits);
    const int n = static_cast<int>(std::ceil(1 + digits * (0.62 + scale / 10)));
    rules.push_back(smooth ? gauss_nodes(law, n, digits)
                           : trapezoid_nodes(law, digits, kMostNodesInU));
    if (rules.back().size() == 0) return false;
    plan.nodes = std::max(plan.nodes, rules.back().size());
  }
  plan.ld = padded(plan.nodes);
  plan.u.assign(at(H * plan.ld), 0.0);
  plan.weight.assign(at(H * plan.ld), 0.0);
  for (int h = 0; h < H; ++h) {
    const Rule& rule = rules[at(h)];
    plan.centre.push_back(rule.x[at(rule.size() / 2)]);
    for (int i = 0; i < rule.size(); ++i) {
      const double u = rule.x[at(i)] - plan.centre.back();
      plan.u[at(h * plan.ld + i)] = u;
      plan.weight[at(h * plan.ld + i)] = rule.w[at(i)];
      plan.moderate = plan.moderate && std::abs(u) < kLargestLog;
    }
  }
  plan.e = plan.u;
  for (double& x : plan.e) x = plan.moderate ? std::exp(x) : x;
  return true;
}

/// The cheaper of Mehler's sum and conditioning, for one pair of heads. Nothing if both are too
/// dear.
std::optional<PairPlan> plan_pair(const TokenLaws<double>& laws, int I, int J, int nodes,
                                  double digits, double most_work) {
  if (laws.q(0, I, I) < laws.q(0, J, J)) std::swap(I, J);
  double first = kLeastDeviation * kLeastDeviation, rest = first;
  PairPlan pair{I, J, false, 0, {}, {}};
  for (int c = 0; c < laws.components; ++c) {
    const double q = laws.q(c, I, I), p = laws.q(c, J, J), x = laws.q(c, I, J);
    const double rho = q * p > 0 ? x / std::sqrt(q * p) : 0.0;
    pair.rank = std::max(pair.rank, mehler_terms(std::sqrt(q), std::sqrt(p), rho, digits + 1));
    first = std::max(first, q);
    rest = std::max(rest, p - (q > 0 ? x * x / q : 0.0));
  }
  const double product = 8.0 * nodes;
  const double fewest = std::min(normal_rule_size(std::sqrt(first), digits + 1), double(pair.rank));
  if (!(fewest * nodes * nodes <= most_work)) return std::nullopt;
  if (!(normal_rule_size(std::sqrt(first), digits + 1) < kMostNodesInScore)) return pair;
  pair.first = normal_rule(std::sqrt(first), digits + 1);
  pair.second = normal_rule(deviation(rest), digits + 1);
  const double exponentials = 10.0 * pair.second.size();
  if (pair.first.size() * (product + exponentials) < pair.rank * product) {
    pair.conditional = true;
    pair.rank = pair.first.size();
  }
  return pair;
}

}  // namespace

std::optional<HeadsPlan> plan_heads(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                                    const double* b, double digits) {
  HeadsPlan plan;
  double variance = kLeastDeviation * kLeastDeviation, shift = 0, correlation = 0;
  for (int c = 0; c < laws.components; ++c) {
    for (int h = 0; h < problem.H; ++h) {
      variance = std::max(variance, laws.q(c, h, h));
      shift = std::max(shift, std::abs(laws.mean(c, h)));
      for (int k = 0; k < h; ++k) {
        const double scale = std::sqrt(laws.q(c, h, h) * laws.q(c, k, k));
        if (scale > 0) correlation = std::max(correlation, std::abs(laws.q(c, h, k)) / scale);
      }
    }
  }
  const double sigma = std::sqrt(variance);
  // Before anything is made: placing the nodes, and the tables with one node for each unit of u.
  const double C = laws.components, score_nodes = normal_rule_size(sigma, digits + 7);
  if (!(score_nodes < kMostNodesInScore) || !(score_nodes * 500 * problem.H * C < kMostWork) ||
      !(normal_rule_size(sigma, digits) * sigma * C < problem.most_work)) {
    return std::nullopt;
  }
  if (!place_nodes(problem, laws, b, digits, std::max(sigma, shift / 2), correlation, plan)) {
    return std::nullopt;
  }
  const double tables = normal_rule_size(sigma, digits) * plan.nodes * problem.H * C;
  if (!(tables <= problem.most_work)) return std::nullopt;

  const int gauss = gauss_hermite_size(sigma, digits);
  const bool use_gauss = sigma < 2 && gauss <= kMostGaussHermite;
  plan.terms = 1;
  for (int I = 0; I < problem.H; ++I) {
    for (int J = I + 1; J < problem.H; ++J) {
      auto planned = plan_pair(laws, I, J, plan.nodes, digits, problem.most_work);
      if (!planned) return std::nullopt;
      plan.pairs.push_back(std::move(*planned));
      PairPlan& pair = plan.pairs.back();
      if (use_gauss) {
        pair.conditional = false;
        pair.rank = std::min(pair.rank, gauss);
      }
      if (!pair.conditional) plan.terms = std::max(plan.terms, pair.rank);
    }
  }
  if (use_gauss) {
    plan.z = gauss_hermite(gauss);
  } else {
    // The rule must resolve f, at its scale 1 / sigma, times the highest polynomial.
    plan.folded = plan.terms > 1;
    const double wave = std::sqrt(plan.terms + double(kShifts)) + std::sqrt(2 * digits) +
                        sigma * resolved_frequency(digits + 1);
    const double reach = plan.terms > 1 ? 2 * std::sqrt(digits + 1) : std::sqrt(2 * digits) + 0.5;
    plan.z = normal_trapezoid(2 * std::numbers::pi / wave, reach);
  }
  if (!(plan.cost(problem.H, laws.components) <= problem.most_work) ||
      plan.bytes(problem.H, laws.components) > kMostBytes) {
    return std::nullopt;
  }
  const int polynomials = plan.terms + (plan.folded ? kShifts : 0);
  const Matrix p = hermite(plan.z.x, polynomials);
  for (int k = 0; k < polynomials; ++k) {
    for (int i = 0; i < plan.z.size(); ++i) plan.project.push_back(p(k, i) * plan.z.w[at(i)]);
  }
  return plan;
}

double HeadsPlan::cost(int heads, int components) const {
  // A value of a pair is 16 products. One of a table is an exponential, two in logarithms, with
  // its derivatives, and 4 products a polynomial, or half a one if folded.
  const double n = nodes, C = components, exponential = moderate ? 1.5 : 3.0;
  const double products = terms > 1 ? terms / (folded ? 32.0 : 4.0) : 0.0;
  double sum = heads * C * z.size() * n * (exponential + products);
  for (const PairPlan& pair : pairs) {
    sum += C * pair.rank * n * n;
    if (pair.conditional) sum += exponential * C * pair.rank * pair.second.size() * n;
  }
  return sum;
}

double HeadsPlan::bytes(int heads, int components) const {
  // As Heads allocates them: tables of every head; rows, squares and rows of pairs of a worker.
  const double row = ld, C = components;
  double rank = 0, conditional = 0;
  for (const PairPlan& pair : pairs) {
    rank = std::max(rank, double(pair.rank));
    if (pair.conditional) conditional = std::max(conditional, double(pair.rank));
  }
  const double tables = heads * row * C * (4.0 * terms + 1);
  const double rows = terms > 1 ? 5.0 * z.size() * row : 0.0;
  const double squares = pairs.empty() ? 0.0 : 18.0 * nodes * row;
  return 8 * (tables + rows + squares + (7 * rank + 8 * conditional) * C * row +
              double(terms) * z.size());
}

}  // namespace headflow::factorised
