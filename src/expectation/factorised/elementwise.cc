// Activations without a denominator, sigma_hl = a_h(chi_hl). Tokens are then independent, and
//
//   E = 1 - (2/H) sum_h S_h + (1/H^2) sum_hh' [ C1_hh' + (L-1) C0_hh' ],
//   S_h = E_1 a_h,    C_hh' = E a_h a_h',
//
// with E_0 over an ordinary token's scores and E_1 over the relevant token's: integrals over one
// and two Gaussian scores. Derivatives by Price's theorem: d/dmu_h = a_h', d/dQ_hh = a_h''/2,
// d/dQ_hh' = a_h' a_h'' under the expectation.
//
// Rule: the trapezoid in the score's normal variable, which converges geometrically for an analytic
// a: with step d the error is exp(-2 pi r / (sigma d)), r the distance of the nearest singularity
// (pi for the sigmoid; 2 is assumed), and exp(-2 pi^2 / d^2) from the Gaussian. A pair is an outer
// rule over one score and an inner one over the other given the first.
// Cost: for each pair and component n n' values; n about digits (0.3 + 0.08 sigma digits).

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/index.h"
#include "expectation/factorised/quadrature.h"

namespace headflow::factorised {
namespace {

constexpr double kNearestSingularity = 2.0;
constexpr int kMostElementNodes = 1 << 16;  // of one score

struct ElementRule {
  std::vector<double> z, w;
  int size() const { return static_cast<int>(z.size()); }
};

/// Of N(0, 1), for functions of a score of this deviation; empty if it would have too many nodes.
ElementRule element_rule(double sigma, double digits) {
  sigma = std::max(sigma, 0.1);  // a score that has no variance yet may get some
  const double step = std::min(2 * std::numbers::pi * kNearestSingularity / (sigma * digits),
                               std::numbers::pi * std::sqrt(2 / digits));
  const double reach = std::sqrt(2 * digits) + 1;
  const double half = std::ceil(reach / step);
  if (2 * half + 1 > kMostElementNodes) return {};
  ElementRule out;
  double total = 0;
  for (double i = -half; i <= half; ++i) {
    out.z.push_back(i * step);
    out.w.push_back(std::exp(-0.5 * i * step * i * step));
    total += out.w.back();
  }
  for (double& w : out.w) w /= total;
  return out;
}

/// a, a', a'' and derivatives by own parameters at some scores.
struct ElementValues {
  std::vector<double> chi;
  std::vector<std::vector<double>> of;  // a, a', a'', then by each own parameter

  void evaluate(const ElementFunction& function, const Sizes& sizes, int head,
                const double* parameters, std::size_t own) {
    of.resize(3 + own);
    std::vector<double*> by;
    for (std::vector<double>& one : of) one.resize(chi.size());
    for (std::size_t j = 0; j < own; ++j) by.push_back(of[3 + j].data());
    function.evaluate(sizes, head, parameters, static_cast<int>(chi.size()), chi.data(),
                      of[0].data(), of[1].data(), of[2].data(), by.data());
  }
};

struct PairRules {
  int h, k;                         // the score of h first, that of k given it
  std::vector<ElementRule> second;  // by component
};

class ElementwiseQuadrature final : public LawQuadrature {
 public:
  ElementwiseQuadrature(const QuadratureProblem& problem,
                        std::shared_ptr<const ElementFunction> function,
                        std::vector<ElementRule> first, std::vector<PairRules> pairs)
      : problem_(problem),
        sizes_{problem.L, problem.H, 1},
        function_(std::move(function)),
        first_(std::move(first)),
        pairs_(std::move(pairs)) {
    for (int h = 0; h < problem.H; ++h) own_.push_back(function_->own_parameters(sizes_, h));
  }

  bool has_tangents() const override { return false; }

  void evaluate(const TokenLaws<double>& laws, const std::vector<double>& blocks,
                bool /*with_defect: there is no sum rule*/, LossAndBars<double>& out) override {
    const int H = problem_.H, C = laws.components;
    out.laws.reset(H, C);
    out.blocks.assign(blocks.size(), 0.0);
    out.loss = 1;
    out.defect = 0;
    for (int h = 0; h < H; ++h) single(h, laws, blocks, out);
    std::vector<LossAndBars<double>> parts(pairs_.size());
    problem_.workers->for_each_block(pairs_.size(), [&](std::size_t i, int) {
      parts[i].laws.reset(H, C);
      parts[i].blocks.assign(blocks.size(), 0.0);
      pair(pairs_[i], laws, blocks, parts[i]);
    });
    for (const LossAndBars<double>& part : parts) {
      out.loss += part.loss;
      const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
      };
      add(out.laws.Q, part.laws.Q);
      add(out.laws.mu, part.laws.mu);
      add(out.blocks, part.blocks);
    }
  }
  void evaluate(const TokenLaws<Dual>& /*laws*/, const std::vector<Dual>& /*blocks*/,
                LossAndBars<Dual>& /*out*/) override {}

  std::int64_t nodes() const override {
    double sum = 0;
    const auto C = at(problem_.signal->count());
    for (const ElementRule& rule : first_) sum += rule.size();
    for (const PairRules& pair : pairs_) {
      for (std::size_t c = 0; c < C; ++c) {
        sum += double(first_[at(pair.h) * C + c].size()) * pair.second[c].size();
      }
    }
    return static_cast<std::int64_t>(sum * (1.0 + double(own_[0].size())));
  }

 private:
  /// How often a component's token occurs, and its probability.
  double times(int c) const { return c == 0 ? problem_.L - 1.0 : problem_.signal->weight[at(c)]; }
  const ElementRule& first(int h, int c) const {
    return first_[at(h) * at(problem_.signal->count()) + at(c)];
  }

  /// S_h and C_hh.
  void single(int h, const TokenLaws<double>& laws, const std::vector<double>& blocks,
              LossAndBars<double>& out) const {
    const double one = 1.0 / problem_.H;
    ElementValues values;
    for (int c = 0; c < laws.components; ++c) {
      const ElementRule& rule = first(h, c);
      const double sigma = deviation(laws.q(c, h, h));
      values.chi.resize(at(rule.size()));
      for (int i = 0; i < rule.size(); ++i) {
        values.chi[at(i)] = laws.mean(c, h) + sigma * rule.z[at(i)];
      }
      values.evaluate(*function_, sizes_, h, blocks.data(), own_[at(h)].size());
      for (int i = 0; i < rule.size(); ++i) {
        const double a = values.of[0][at(i)], a1 = values.of[1][at(i)], a2 = values.of[2][at(i)];
        const double w = times(c) * rule.w[at(i)];
        const double hit = c > 0 ? -2 * one * w : 0.0, square = one * one * w;
        const double slope = hit + 2 * square * a;  // d loss / d a
        out.loss += hit * a + square * a * a;
        out.laws.mean(c, h) += slope * a1;
        out.laws.q(c, h, h) += 0.5 * (slope * a2 + 2 * square * a1 * a1);
        for (std::size_t j = 0; j < own_[at(h)].size(); ++j) {
          out.blocks[at(own_[at(h)][j])] += slope * values.of[3 + j][at(i)];
        }
      }
    }
  }

  /// C_hk.
  void pair(const PairRules& pair, const TokenLaws<double>& laws, const std::vector<double>& blocks,
            LossAndBars<double>& out) const {
    const int h = pair.h, k = pair.k;
    const double factor = 2.0 / (double(problem_.H) * problem_.H);
    ElementValues of_h, of_k;
    for (int c = 0; c < laws.components; ++c) {
      const ElementRule &rule = first(h, c), &inner = pair.second[at(c)];
      const double q = laws.q(c, h, h), x = laws.q(c, h, k), sigma = deviation(q);
      const double slope = q > 0 ? x / q : 0.0, rest = deviation(laws.q(c, k, k) - slope * x);
      of_h.chi.resize(at(rule.size()));
      for (int i = 0; i < rule.size(); ++i) {
        of_h.chi[at(i)] = laws.mean(c, h) + sigma * rule.z[at(i)];
      }
      of_h.evaluate(*function_, sizes_, h, blocks.data(), own_[at(h)].size());
      of_k.chi.resize(at(inner.size()));
      std::vector<double> mean(3 + own_[at(k)].size());
      for (int i = 0; i < rule.size(); ++i) {
        if (i % 16 == 0) problem_.workers->check_go_on();
        for (int j = 0; j < inner.size(); ++j) {
          of_k.chi[at(j)] = laws.mean(c, k) + slope * sigma * rule.z[at(i)] + rest * inner.z[at(j)];
        }
        of_k.evaluate(*function_, sizes_, k, blocks.data(), own_[at(k)].size());
        for (std::size_t n = 0; n < mean.size(); ++n) {
          mean[n] = 0;
          for (int j = 0; j < inner.size(); ++j) mean[n] += inner.w[at(j)] * of_k.of[n][at(j)];
        }
        const double w = factor * times(c) * rule.w[at(i)];
        const auto a = [&](std::size_t n) { return of_h.of[n][at(i)]; };
        out.loss += w * a(0) * mean[0];
        out.laws.mean(c, h) += w * a(1) * mean[0];
        out.laws.mean(c, k) += w * a(0) * mean[1];
        out.laws.q(c, h, h) += 0.5 * w * a(2) * mean[0];
        out.laws.q(c, k, k) += 0.5 * w * a(0) * mean[2];
        out.laws.q(c, h, k) += 0.5 * w * a(1) * mean[1];
        out.laws.q(c, k, h) += 0.5 * w * a(1) * mean[1];
        for (std::size_t j = 0; j < own_[at(h)].size(); ++j) {
          out.blocks[at(own_[at(h)][j])] += w * a(3 + j) * mean[0];
        }
        for (std::size_t j = 0; j < own_[at(k)].size(); ++j) {
          out.blocks[at(own_[at(k)][j])] += w * a(0) * mean[3 + j];
        }
      }
    }
  }

  QuadratureProblem problem_;
  Sizes sizes_;
  std::shared_ptr<const ElementFunction> function_;
  std::vector<ElementRule> first_;  // [h][c]
  std::vector<PairRules> pairs_;
  std::vector<std::vector<int>> own_;
};

}  // namespace

std::unique_ptr<LawQuadrature> elementwise_quadrature(
    const QuadratureProblem& problem, const std::shared_ptr<const ElementFunction>& function,
    const TokenLaws<double>& laws, double digits) {
  std::vector<ElementRule> first;
  std::vector<PairRules> pairs;
  for (int h = 0; h < problem.H; ++h) {
    for (int c = 0; c < laws.components; ++c) {
      first.push_back(element_rule(deviation(laws.q(c, h, h)), digits));
      if (first.back().size() == 0) return nullptr;
    }
    for (int k = 0; k < h; ++k) {
      PairRules pair{h, k, {}};
      for (int c = 0; c < laws.components; ++c) {
        const double q = laws.q(c, h, h), x = laws.q(c, h, k);
        const double rest = laws.q(c, k, k) - (q > 0 ? x * x / q : 0.0);
        pair.second.push_back(element_rule(deviation(rest), digits));
        if (pair.second.back().size() == 0) return nullptr;
      }
      pairs.push_back(std::move(pair));
    }
  }
  auto out = std::make_unique<ElementwiseQuadrature>(problem, function, std::move(first),
                                                     std::move(pairs));
  if (static_cast<double>(out->nodes()) > problem.most_work) return nullptr;
  return out;
}

}  // namespace headflow::factorised
