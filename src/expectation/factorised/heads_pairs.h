#pragma once

// The terms of pairs of heads, for heads_terms.h: C_hh' and its derivatives. Of all that is
// computed for softmax and softmax-1 nearly everything is here.

#include <cmath>

#include "expectation/factorised/heads_singles.h"

namespace headflow::factorised {

inline constexpr int kSquares = 15;  // functions of (u, u') that a pair keeps

template <class S>
struct PairTerm {
  S C_hk, b_I, b_J;
  double total = 1;    ///< of the law of (U_I, U_J)
  std::vector<S> bar;  ///< five derivatives for each component, as `contract` gives them
};

template <class S>
class PairTerms {
 public:
  struct Scratch {
    typename HeadTables<S>::Scratch tables;
    std::vector<S> line, scaled, product, row_weight, square, transposed, pair_tables;
  };

  /// Of the tables, sinks and weights of heads at a point, which are made before.
  PairTerms(const QuadratureProblem& problem, const HeadsPlan& plan, const HeadsPoint<S>& point,
            const HeadTables<S>& tables, const SingleTerms<S>& singles)
      : problem_(problem), plan_(plan), point_(point), tables_(tables), singles_(singles) {
    terms_.resize(plan.pairs.size());
  }

  std::size_t size() const { return terms_.size(); }
  const PairTerm<S>& operator[](std::size_t i) const { return terms_[i]; }

  /// Room for a worker, when it first has something to do.
  void prepare(Scratch& s) const {
    if (!s.line.empty()) return;
    const std::size_t n = at(plan_.nodes), ld = at(plan_.ld);
    std::size_t rank = 0;
    for (const PairPlan& pair : plan_.pairs) rank = std::max(rank, at(pair.rank));
    const std::size_t width = rank * at(tables_.group(1).count);
    s.line.resize(12 * ld);
    tables_.prepare(s.tables);
    s.scaled.resize(width * ld);
    s.product.resize(6 * width * ld);
    s.row_weight.resize(width);
    if (plan_.pairs.empty()) return;
    s.square.resize(kSquares * n * ld);
    s.transposed.resize(2 * n * ld);
  }

  void evaluate(std::size_t index, bool with_defect, Scratch& s) {
    const PairPlan& plan = plan_.pairs[index];
    PairTerm<S>& out = terms_[index];
    const Squares q = squares(s);
    for (int g = 0; g < 2; ++g) {
      PairTables<S> t{};
      const int rows = pair_tables(plan, g, s, t);
      sum_of_products(rows, t.A[0], t.B[0], s, q.G[g]);
      sum_of_products(rows, t.A[1], t.B[1], s, q.K[g]);
      if (!with_defect) continue;
      sum_of_products(rows, t.A[1], t.B[0], s, q.Gu[g]);
      sum_of_products(rows, t.A[0], t.B[1], s, q.Gv[g]);
    }
    token_powers(plan_.nodes * plan_.ld, problem_.L, q.G[0], q.P1, q.P2, q.P3);
    if (with_defect) out.total = total_of_pair(plan, q);
    sum_pair(plan, q, s.line.data(), out);
    out.bar.resize(at(5 * point_.laws->components));
    for (int g = 0; g < 2; ++g) pull_back_pair(plan, g, q, s, out);
  }

 private:
  /// Tables of a conditional pair, for one group: A over nodes of the first score, B over
  /// the second score given the first. Rows are ordered (node, component).
  void conditional_tables(const PairPlan& pair, int g, Scratch& s, PairTables<S>& t) {
    const int ld = plan_.ld, K = tables_.group(g).count, rank = pair.rank;
    const auto size = at(rank) * at(K * ld);
    s.pair_tables.resize(8 * size);
    for (int a = 0; a < kOrders; ++a) {
      t.A[a] = s.pair_tables.data() + at(a) * size;
      t.B[a] = s.pair_tables.data() + at(4 + a) * size;
    }
    std::vector<S> first, second;
    for (int k = 0; k < K; ++k) {
      const int c = tables_.group(g).first + k;
      const S q = point_.laws->q(c, pair.I, pair.I), x = point_.laws->q(c, pair.I, pair.J);
      const S sigma = deviation(q);
      const S slope = value_of(q) > 0 ? x / q : S(0.0);
      const S rest = deviation(point_.laws->q(c, pair.J, pair.J) - slope * x);
      const S centre = point_.laws->mean(c, pair.I) + plan_.centre[at(pair.I)];
      const Given given = tables_.score_nodes(pair.first, centre, sigma, first);
      for (int r = 0; r < rank; ++r) {
        const auto row = at(r * K + k) * at(ld);
        S *A[4], *B[4];
        for (int a = 0; a < kOrders; ++a) {
          A[a] = const_cast<S*>(t.A[a]) + row;
          B[a] = const_cast<S*>(t.B[a]) + row;
        }
        derivative_rows(given, 1, &first[at(r)], ld, tables_.nodes_of(pair.I, given), kOrders, A);
        const S shift = slope * sigma * pair.first.x[at(r)];
        const S mean = point_.laws->mean(c, pair.J) + plan_.centre[at(pair.J)] + shift;
        const Given other = tables_.score_nodes(pair.second, mean, rest, second);
        if (r % 64 == 0) problem_.workers->check_go_on();
        tables_.sum_in_parts(other, second, pair.second.w, tables_.nodes_of(pair.J, other), kOrders,
                             B);
      }
    }
  }

  /// Fills the tables of a pair and group, and the weights of their rows.
  int pair_tables(const PairPlan& pair, int g, Scratch& s, PairTables<S>& t) {
    const int K = tables_.group(g).count;
    if (pair.conditional) {
      conditional_tables(pair, g, s, t);
    } else {
      for (int a = 0; a < kOrders; ++a) {
        t.A[a] = tables_.table(pair.I, g, a);
        t.B[a] = tables_.table(pair.J, g, a);
      }
    }
    for (int k = 0; k < K; ++k) {
      const int c = tables_.group(g).first + k;
      const S sigma_I = deviation(point_.laws->q(c, pair.I, pair.I));
      const S sigma_J = deviation(point_.laws->q(c, pair.J, pair.J));
      const S scale = sigma_I * sigma_J;
      const S rho = value_of(scale) > 1e-300 ? point_.laws->q(c, pair.I, pair.J) / scale : S(0.0);
      S weight = problem_.signal->weight[at(c)];
      for (int r = 0; r < pair.rank; ++r) {
        if (pair.conditional) {
          s.row_weight[at(r * K + k)] = problem_.signal->weight[at(c)] * pair.first.w[at(r)];
        } else {
          s.row_weight[at(r * K + k)] = weight;
          weight *= rho;
        }
      }
    }
    return pair.rank * K;
  }

  /// G or K of a group: sum_r weight_r A_r(u) B_r(u').
  void sum_of_products(int rows, const S* A, const S* B, Scratch& s, S* out) {
    const int ld = plan_.ld;
    for (int r = 0; r < rows; ++r) {
      const S w = s.row_weight[at(r)];
      const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(r) * ld;
      for (std::ptrdiff_t j = begin; j < begin + ld; ++j) s.scaled[at(j)] = w * A[j];
    }
    problem_.workers->check_go_on();
    multiply(plan_.nodes, rows, ld, Strided<S>{s.scaled.data(), 1, ld}, B, out, ld);
  }

  /// Functions of (u, u') for a pair, [nodes][ld]; index 0: ordinary, 1: relevant.
  struct Squares {
    S *G[2], *K[2];    // K = d_u d_u' G
    S *Gu[2], *Gv[2];  // d_u G and d_u' G, for the defect
    S *Gb[2], *Kb[2];  // what the loss gains with G and K
    S *P1, *P2, *P3;   // powers L-1, L-2, L-3 of G0
  };
  Squares squares(Scratch& s) const {
    const auto at_number = [&](int i) {
      return s.square.data() + at(i) * at(plan_.nodes) * at(plan_.ld);
    };
    Squares out{};
    S** all[] = {&out.G[0],  &out.G[1],  &out.K[0],  &out.K[1],  &out.Gb[0],
                 &out.Gb[1], &out.Kb[0], &out.Kb[1], &out.P1,    &out.P2,
                 &out.P3,    &out.Gu[0], &out.Gu[1], &out.Gv[0], &out.Gv[1]};
    static_assert(std::size(all) == kSquares);
    for (int i = 0; i < kSquares; ++i) *all[i] = at_number(i);
    return out;
  }

  /// int int d_u d_u' [ e_I e_J X ], X = G1 G0^(L-1); e' = -sink e.
  double total_of_pair(const PairPlan& plan, const Squares& q) const {
    const int n = plan_.nodes, ld = plan_.ld;
    const double L = problem_.L;
    const S *w_I = singles_.weight(plan.I), *w_J = singles_.weight(plan.J);
    const S *s_I = singles_.sink(plan.I), *s_J = singles_.sink(plan.J);
    double total = 0;
    for (int i = 0; i < n; ++i) {
      const double sink_I = value_of(s_I[i]);
      double row = 0;
      for (int j = 0; j < n; ++j) {
        const std::size_t ij = at(i) * at(ld) + at(j);
        const double sink_J = value_of(s_J[j]);
        const double G1 = value_of(q.G[1][ij]), K0 = value_of(q.K[0][ij]);
        const double K1 = value_of(q.K[1][ij]), P1 = value_of(q.P1[ij]);
        const double P2 = (L - 1) * value_of(q.P2[ij]);
        const double P3 = (L - 1) * (L - 2) * value_of(q.P3[ij]);
        const double u0 = value_of(q.Gu[0][ij]), u1 = value_of(q.Gu[1][ij]);
        const double v0 = value_of(q.Gv[0][ij]), v1 = value_of(q.Gv[1][ij]);
        const double X_u = u1 * P1 + G1 * u0 * P2;
        const double X_v = v1 * P1 + G1 * v0 * P2;
        const double X_uv = K1 * P1 + (K0 * G1 + u1 * v0 + v1 * u0) * P2 + u0 * v0 * G1 * P3;
        const double sinks = sink_I * sink_J * G1 * P1;
        const double density = X_uv - sink_J * X_u - sink_I * X_v + sinks;
        row += value_of(w_J[j]) * density;
      }
      total += value_of(w_I[i]) * row;
    }
    return total;
  }

  /// C_IJ, its derivatives with respect to the biases, and Gb and Kb.
  void sum_pair(const PairPlan& plan, const Squares& q, S* column, PairTerm<S>& out) const {
    const int n = plan_.nodes, ld = plan_.ld, H = problem_.H;
    const double L = problem_.L;
    const S *w_I = singles_.weight(plan.I), *w_J = singles_.weight(plan.J);
    const S *sink_I = singles_.sink(plan.I), *sink_J = singles_.sink(plan.J);
    const S factor = 2.0 / (double(H) * H) * point_.v * point_.v;
    out.C_hk = out.b_I = out.b_J = 0.0;
    std::fill_n(column, ld, S(0.0));
    for (int i = 0; i < n; ++i) {
      S row = 0.0;
      const S scale = factor * w_I[i];
      for (int j = 0; j < ld; ++j) {
        const int ij = i * ld + j;
        const S w = scale * w_J[j];
        const S K0G1 = q.K[0][ij] * q.G[1][ij];
        const S K1 = q.K[1][ij];
        const S wP1 = w * q.P1[ij], wP2 = (L - 1) * w * q.P2[ij];
        const S both = wP1 * K1 + wP2 * K0G1;
        row += both;
        column[j] += both;
        q.Kb[1][ij] = wP1;
        q.Kb[0][ij] = wP2 * q.G[1][ij];
        q.Gb[1][ij] = wP2 * q.K[0][ij];
        q.Gb[0][ij] = wP2 * K1 + (L - 1) * (L - 2) * w * q.P3[ij] * K0G1;
      }
      out.C_hk += row;
      out.b_I -= row * sink_I[i];
    }
    for (int j = 0; j < n; ++j) out.b_J -= column[j] * sink_J[j];
    // The loss takes v^2/H^2 C outside; what was summed carries 2 v^2/H^2.
    out.C_hk = value_of(factor) != 0 ? S(out.C_hk / factor) : S(0.0);
  }

  /// From Gb and Kb of a group to derivatives with respect to the laws of its components.
  void pull_back_pair(const PairPlan& plan, int g, const Squares& q, Scratch& s, PairTerm<S>& out) {
    const int n = plan_.nodes, ld = plan_.ld;
    PairTables<S> t{};
    const int rows = pair_tables(plan, g, s, t);
    S *GbT = s.transposed.data(), *KbT = GbT + at(n) * at(ld);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        GbT[j * ld + i] = q.Gb[g][i * ld + j];
        KbT[j * ld + i] = q.Kb[g][i * ld + j];
      }
      for (int j = n; j < ld; ++j) GbT[i * ld + j] = KbT[i * ld + j] = 0.0;
    }
    const auto apply = [&](int i, const S* tables, const S* adjoint) {
      S* product = s.product.data() + at(i) * at(rows) * at(ld);
      problem_.workers->check_go_on();
      multiply(rows, n, ld, Strided<S>{tables, ld, 1}, adjoint, product, ld);
      return product;
    };
    // With one covariance for all components, sum_uu' Gb K is all that is left of X1.
    const bool shared = problem_.signal->atoms || point_.laws->components == 2;
    t.T0 = apply(0, t.B[0], GbT);
    t.T1 = apply(1, t.B[1], KbT);
    t.X1 = shared ? nullptr : apply(2, t.B[1], GbT);
    t.X2 = apply(3, t.B[2], KbT);
    t.R0 = apply(4, t.A[0], q.Gb[g]);
    t.R1 = apply(5, t.A[1], q.Kb[g]);
    S direct = 0.0;
    for (int i = 0; shared && i < n; ++i) {
      for (int j = 0; j < n; ++j) direct += q.Gb[g][i * ld + j] * q.K[g][i * ld + j];
    }
    const auto [first, count] = tables_.group(g);
    for (int k = 0; k < count; ++k) {
      contract(k, count, rows, ld, t, s.row_weight.data(), out.bar.data() + at(5 * (first + k)));
    }
    out.bar[at(5 * first + 4)] += direct;
  }

  const QuadratureProblem& problem_;
  const HeadsPlan& plan_;
  const HeadsPoint<S>& point_;
  const HeadTables<S>& tables_;
  const SingleTerms<S>& singles_;
  std::vector<PairTerm<S>> terms_;
};

}  // namespace headflow::factorised
