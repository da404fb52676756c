#pragma once

// The terms of single heads, for heads_terms.h: S_h, C_hh and their derivatives.

#include <cmath>

#include "expectation/factorised/heads_tables.h"

namespace headflow::factorised {

/// Where the terms are evaluated.
template <class S>
struct HeadsPoint {
  const TokenLaws<S>* laws = nullptr;
  const S* b = nullptr;  ///< of sinks; null: none
  S v = 1.0;
};

template <class S>
struct SingleTerm {
  S S_h, C_hh, b;
  double total = 1;               ///< of the law of U_h
  std::vector<S> mean, variance;  ///< derivatives, by component
};

template <class S>
class SingleTerms {
 public:
  SingleTerms(const QuadratureProblem& problem, const HeadsPlan& plan)
      : problem_(problem), plan_(plan) {
    sink_.resize(at(problem.H * plan.ld));
    weight_.resize(at(problem.H * plan.ld));
    terms_.resize(at(problem.H));
  }

  const SingleTerm<S>& operator[](int h) const { return terms_[at(h)]; }
  /// At the nodes: e^(u+b), and the weight times e_h.
  const S* sink(int h) const { return sink_.data() + at(h * plan_.ld); }
  const S* weight(int h) const { return weight_.data() + at(h * plan_.ld); }

  /// `line` has room for 12 rows.
  void evaluate(const HeadsPoint<S>& point, const HeadTables<S>& tables, int h,
                std::vector<S>& line) {
    using std::exp;
    const int ld = plan_.ld, H = problem_.H, C = point.laws->components;
    const double L = problem_.L;
    SingleTerm<S>& out = terms_[at(h)];
    out.mean.assign(at(C), S(0.0));
    out.variance.assign(at(C), S(0.0));
    // g1 and its derivatives, weighted over components; powers of g0; e_h times the weights.
    S* g1[5];
    for (int a = 0; a < 5; ++a) g1[a] = line.data() + at(a * ld);
    const auto one_score = [&](int c, int a) -> const S* {
      if (a == 4) return tables.fourth(h, c);
      return c == 0 ? tables.table(h, 0, a) : tables.table(h, 1, a) + at((c - 1) * ld);
    };
    for (int a = 0; a < 5; ++a) {
      std::fill_n(g1[a], ld, S(0.0));
      for (int c = 1; c < C; ++c) {
        const double p = problem_.signal->weight[at(c)];
        const S* g = one_score(c, a);
        for (int j = 0; j < ld; ++j) g1[a][j] += p * g[j];
      }
    }
    const S* g0[5];
    for (int a = 0; a < 5; ++a) g0[a] = one_score(0, a);
    S *p1 = g1[4] + ld, *p2 = p1 + ld, *p3 = p2 + ld;
    token_powers(ld, L, g0[0], p1, p2, p3);
    S *x = p3 + ld, *y = x + ld;
    S *sink = sink_.data() + at(h * ld), *w = weight_.data() + at(h * ld);
    out.S_h = out.C_hh = out.b = 0.0;
    for (int j = 0; j < ld; ++j) {
      sink[j] = point.b ? sink_at(point.b[h], h, j) : S(0.0);
      w[j] = plan_.weight[at(h * ld + j)] * exp(-sink[j]);
      x[j] = 2.0 / H * point.v * w[j];
      y[j] = 1.0 / (double(H) * H) * point.v * point.v * w[j];
    }
    S variance0 = 0.0;
    double total = 0;
    for (int j = 0; j < plan_.nodes; ++j) {
      const S k1 = g1[2][j] - g1[1][j], k0 = g0[2][j] - g0[1][j];
      const S squares = k1 * p1[j] + (L - 1) * k0 * g1[0][j] * p2[j];
      const S hits = -(g1[1][j] * p1[j]);
      const S others = -((L - 1) * g0[1][j] * g1[0][j] * p2[j]);
      total += value_of(w[j]) * value_of(hits + others + sink[j] * g1[0][j] * p1[j]);
      out.S_h += w[j] * hits;
      out.C_hh += w[j] * squares;
      out.b -= sink[j] * (y[j] * squares - x[j] * hits);
      const S by_p = p2[j] * g0[2][j] * (x[j] * g1[1][j] + y[j] * k1);
      const S by_k = (g0[4][j] - g0[3][j]) * p2[j] + (L - 2) * k0 * p3[j] * g0[2][j];
      variance0 += 0.5 * (L - 1) * (by_p + y[j] * g1[0][j] * by_k);
    }
    out.variance[0] = variance0;
    out.total = total;
    for (int c = 1; c < C; ++c) {
      const S *d1 = one_score(c, 1), *d2 = one_score(c, 2);
      const S *d3 = one_score(c, 3), *d4 = one_score(c, 4);
      const double p = problem_.signal->weight[at(c)];
      S mean = 0.0, variance = 0.0;
      for (int j = 0; j < plan_.nodes; ++j) {
        const S others = (L - 1) * (g0[2][j] - g0[1][j]) * p2[j];
        mean += x[j] * p1[j] * d2[j] + y[j] * ((d3[j] - d2[j]) * p1[j] + others * d1[j]);
        variance += x[j] * p1[j] * d3[j] + y[j] * ((d4[j] - d3[j]) * p1[j] + others * d2[j]);
      }
      out.mean[at(c)] = p * mean;
      out.variance[at(c)] = 0.5 * p * variance;
    }
  }

 private:
  /// e^(u+b) at node j; exp(-e^(u+b)) is 0 long before the largest.
  S sink_at(const S& b, int h, int j) const {
    using std::exp;
    const S t = b + (plan_.centre[at(h)] + plan_.u[at(h * plan_.ld + j)]);
    return value_of(t) < std::log(kLargestExponent) ? S(exp(t)) : S(kLargestExponent);
  }

  const QuadratureProblem& problem_;
  const HeadsPlan& plan_;
  std::vector<S> sink_, weight_;  // [h][ld]
  std::vector<SingleTerm<S>> terms_;
};

}  // namespace headflow::factorised
