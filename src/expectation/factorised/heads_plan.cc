#include "expectation/factorised/heads_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/index.h"
#include "expectation/factorised/kernels.h"
#include "expectation/factorised/node_density.h"

namespace headflow::factorised {
namespace {

/// -log of the n-th Hermite coefficient of f(u + sigma z), f = exp(-e^t), at its largest: the
/// saddle point of int w^n e^(-sigma^2 w^2 / 2) e^(-pi w / 2) dw, times sigma^n / sqrt(n!).
double decay_of_coefficient(double sigma, int n) {
  const double half_pi = std::numbers::pi / 2, q = std::max(sigma * sigma, 1e-12);
  const double w = 2 * n / (half_pi + std::sqrt(half_pi * half_pi + 4 * q * n));
  return q * w * w / 2 + half_pi * w - n * std::log(std::sqrt(q) * w) + std::lgamma(n + 1.0) / 2;
}

/// Mehler terms for a pair of scores: sum_n rho^n c_n c_n' up to e^(-digits).
int mehler_terms(double sigma, double other, double rho, double digits) {
  const double rate = -std::log(std::clamp(std::abs(rho), 1e-12, 1.0));
  int n = 1;
  while (n < 4000 &&
         rate * n + decay_of_coefficient(sigma, n) + decay_of_coefficient(other, n) < digits) {
    n += 1 + n / 16;
  }
  return n + 2;  // the derivatives of f decay later
}

NodeDensity density_of_head(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                            int head, double b, double digits) {
  Rule of_token[2];
  for (int c = 0; c < laws.components; ++c) {
    const double sigma = deviation(laws.q(c, head, head)), mean = laws.mean(c, head);
    const Rule rule = normal_rule(sigma, digits + 7);
    Rule& law = of_token[c > 0];
    for (int i = 0; i < rule.size(); ++i) {
      const double x = mean + sigma * rule.x[at(i)];
      law.x.push_back(std::exp(std::clamp(x, -kLargestExponent, kLargestExponent)));
      law.w.push_back(problem.signal->weight[at(c)] * rule.w[at(i)]);
    }
  }
  const double sink = problem.sink ? std::exp(std::min(b, kLargestExponent)) : 0.0;
  return {problem.L, std::move(of_token[0]), std::move(of_token[1]), sink};
}

/// The nodes in u of every head; `scale` measures how far the scores spread, `correlation` how
/// nearly collinear the heads are. The thresholds between the rules are measured.
void place_nodes(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                 const std::vector<double>& b, double digits, double scale, double correlation,
                 HeadsPlan& plan) {
  const bool smooth = scale < 0.5 || (scale < 1.1 && correlation < 0.8);
  const int H = problem.H;
  std::vector<Rule> rules;
  for (int h = 0; h < H; ++h) {
    const NodeDensity law = density_of_head(problem, laws, h, b[at(h)], digits);
    const int n = static_cast<int>(std::ceil(1 + digits * (0.62 + scale / 10)));
    rules.push_back(smooth ? gauss_nodes(law, n, digits) : trapezoid_nodes(law, digits));
    plan.nodes = std::max(plan.nodes, rules.back().size());
  }
  plan.ld = padded(plan.nodes);
  plan.e.assign(at(H * plan.ld), 1.0);
  plan.weight.assign(at(H * plan.ld), 0.0);
  for (int h = 0; h < H; ++h) {
    const Rule& rule = rules[at(h)];
    plan.centre.push_back(rule.x[at(rule.size() / 2)]);
    for (int i = 0; i < rule.size(); ++i) {
      plan.e[at(h * plan.ld + i)] = std::exp(rule.x[at(i)] - plan.centre.back());
      plan.weight[at(h * plan.ld + i)] = rule.w[at(i)];
    }
  }
}

/// The cheaper of Mehler's sum and conditioning, for one pair of heads.
PairPlan plan_pair(const TokenLaws<double>& laws, int I, int J, int nodes, double digits) {
  if (laws.q(0, I, I) < laws.q(0, J, J)) std::swap(I, J);
  double first = 0, rest = 0;
  PairPlan pair{I, J, false, 0, {}, {}};
  for (int c = 0; c < laws.components; ++c) {
    const double q = laws.q(c, I, I), p = laws.q(c, J, J), x = laws.q(c, I, J);
    const double rho = q * p > 0 ? x / std::sqrt(q * p) : 0.0;
    pair.rank = std::max(pair.rank, mehler_terms(std::sqrt(q), std::sqrt(p), rho, digits + 1));
    first = std::max(first, q);
    rest = std::max(rest, p - (q > 0 ? x * x / q : 0.0));
  }
  pair.first = normal_rule(std::sqrt(first), digits + 1);
  pair.second = normal_rule(deviation(rest), digits + 1);
  const double product = 8.0 * nodes, exponentials = 10.0 * pair.second.size();
  if (pair.first.size() * (product + exponentials) < pair.rank * product) {
    pair.conditional = true;
    pair.rank = pair.first.size();
  }
  return pair;
}

}  // namespace

HeadsPlan plan_heads(const QuadratureProblem& problem, const TokenLaws<double>& laws,
                     const std::vector<double>& b, double digits) {
  HeadsPlan plan;
  double variance = 0, shift = 0, correlation = 0;
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
  place_nodes(problem, laws, b, digits, std::max(sigma, shift / 2), correlation, plan);

  const int gauss = gauss_hermite_size(sigma, digits);
  const bool use_gauss = sigma < 2 && gauss <= kMostGaussHermite;
  plan.terms = 1;
  for (int I = 0; I < problem.H; ++I) {
    for (int J = I + 1; J < problem.H; ++J) {
      plan.pairs.push_back(plan_pair(laws, I, J, plan.nodes, digits));
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
    const double wave = std::sqrt(double(plan.terms)) + std::sqrt(2 * digits) +
                        sigma * resolved_frequency(digits + 1);
    const double reach = plan.terms > 1 ? 2 * std::sqrt(digits + 1) : std::sqrt(2 * digits) + 0.5;
    plan.z = normal_trapezoid(2 * std::numbers::pi / wave, reach);
  }
  const Matrix p = hermite(plan.z.x, plan.terms);
  for (int k = 0; k < plan.terms; ++k) {
    for (int i = 0; i < plan.z.size(); ++i) plan.project.push_back(p(k, i) * plan.z.w[at(i)]);
  }
  return plan;
}

std::int64_t HeadsPlan::cost(int components) const {
  std::int64_t sum = 0;
  for (const PairPlan& pair : pairs) {
    sum += std::int64_t{components} * pair.rank * nodes * nodes;
    if (pair.conditional) sum += std::int64_t{components} * pair.rank * pair.second.size() * nodes;
  }
  return sum;
}

}  // namespace headflow::factorised
