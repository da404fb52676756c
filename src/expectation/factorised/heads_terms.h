#pragma once

// Heads that are normalised one by one: softmax and softmax-1. With
//   f(t) = exp(-e^t), g(u) = E f(u + x), G(u, u') = E f(u + x) f(u' + x'), K = d_u d_u' G
// for the scores x, x' of heads h, h' at one token (index 0: ordinary, 1: relevant) and
// e_h(u) = exp(-e^(u + b_h)) with a sink, 1 without,
//
//   E sigma_h,eps / v
//       S_h   = int e_h (-g1') g0^(L-1) du
//   E sum_l sigma_hl^2 / v^2
//       C_hh  = int e_h [ (g1'' - g1') g0^(L-1) + (L-1) (g0'' - g0') g1 g0^(L-2) ] du
//   E sum_l sigma_hl sigma_h'l / v^2
//       C_hh' = int int e_h e_h' [ K1 G0^(L-1) + (L-1) K0 G1 G0^(L-2) ] du du'
//
//   E = 1 - (2v/H) sum_h S_h + (v^2/H^2) sum_hh' C_hh'.
//
// Derivatives by Price's theorem: dG/dQ_12 = K, dG/dQ_11 = 1/2 d_u^2 G, dG/dmu = d_u G.
// Cost: for each pair and component, 8 products of rank x nodes x nodes; independent of L.
// Checks: U_h = log(Exp(1) / Z_h) has a density, and so has (U_h, U_h'): with the same nodes
//   int -d/du [ e_h g1 g0^(L-1) ] du = 1,   int int d_u d_u' [ e_h e_h' G1 G0^(L-1) ] du du' = 1,
// which for softmax says that the weights sum to one. What is missing is the defect.

#include <cmath>

#include "core/index.h"
#include "expectation/factorised/heads_plan.h"
#include "expectation/factorised/kernels.h"

namespace headflow::factorised {

inline constexpr int kOrders = 4;                // derivatives of f in the tables of a pair
inline constexpr double kSmallestShifted = 1.0;  // sigma: below, powers of 1/sigma cost digits
inline constexpr int kSquares = 15;              // functions of (u, u') that a pair keeps

/// Components with a common role: the ordinary token's one, or the relevant token's K.
struct Group {
  int first, count;
};

template <class S>
class Heads {
 public:
  Heads(const QuadratureProblem& problem, const HeadsPlan& plan)
      : problem_(problem), plan_(plan), groups_{{0, 1}, {1, problem.signal->count() - 1}} {
    const int ld = plan.ld;
    tables_.resize(at(problem.H * 2));
    for (int h = 0; h < problem.H; ++h) {
      for (int g = 0; g < 2; ++g) {
        tables_[at(2 * h + g)].resize(table_size(g) * kOrders);
      }
    }
    fourth_.resize(at(problem.H * problem.signal->count() * ld));
    sink_.resize(at(problem.H * ld));
    weight_.resize(at(problem.H * ld));
    single_.resize(at(problem.H));
    pair_.resize(plan.pairs.size());
    scratch_.resize(at(problem.workers->count()));
  }

  void evaluate(const TokenLaws<S>& laws, const std::vector<S>& blocks, bool with_defect,
                LossAndBars<S>& out) {
    take(laws, blocks, with_defect);
    run(at(problem_.H), [&](std::size_t h, Scratch& s) {
      make_tables(static_cast<int>(h), s);
      single(static_cast<int>(h), s);
    });
    again();
    sum(out);
  }

  // Parts of an evaluation, for differences in one law at a time: with other laws and parameters
  // than the last ones only what depends on these is done again.

  /// The terms that depend on head h: its own, and its pairs. `new_tables` if its laws changed.
  void again(const TokenLaws<S>& laws, const std::vector<S>& blocks, int h, bool new_tables) {
    take(laws, blocks, false);
    prepare(scratch_[0]);
    if (new_tables) make_tables(h, scratch_[0]);
    single(h, scratch_[0]);
    std::vector<std::size_t> pairs;
    for (std::size_t i = 0; i < pair_.size(); ++i) {
      if (plan_.pairs[i].I == h || plan_.pairs[i].J == h) pairs.push_back(i);
    }
    run(pairs.size(), [&](std::size_t i, Scratch& s) { pair(pairs[i], s); });
  }
  /// The terms of pairs, where only covariances of two heads changed.
  void again(const TokenLaws<S>& laws, const std::vector<S>& blocks) {
    take(laws, blocks, false);
    again();
  }

  /// The sum of all terms.
  void sum(LossAndBars<S>& out) const {
    const int H = problem_.H, C = laws_->components;
    out.laws.reset(H, C);
    out.blocks.assign(blocks_, S(0.0));
    S hits = 0.0, squares = 0.0;
    for (int h = 0; h < H; ++h) {
      const Single& s = single_[at(h)];
      hits += s.S_h;
      squares += s.C_hh;
      add_bias(h, s.b, out);
      for (int c = 0; c < C; ++c) {
        out.laws.q(c, h, h) += s.variance[at(c)];
        out.laws.mean(c, h) += s.mean[at(c)];
      }
    }
    for (std::size_t i = 0; i < pair_.size(); ++i) squares += add_pair(i, out);
    if (with_defect_) out.defect = defect(value_of(v_));
    const double one = 1.0 / H;
    out.loss = 1.0 - 2.0 * one * v_ * hits + one * one * v_ * v_ * squares;
    const int scale = problem_.roles.scale;
    if (scale >= 0) out.blocks[at(scale)] = -2.0 * one * hits + 2.0 * one * one * v_ * squares;
  }
  /// The term of one pair alone.
  void of_pair(std::size_t i, LossAndBars<S>& out) const {
    out.laws.reset(problem_.H, laws_->components);
    out.blocks.assign(blocks_, S(0.0));
    const S squares = add_pair(i, out);
    const double one = 1.0 / problem_.H;
    out.loss = one * one * v_ * v_ * squares;
    const int scale = problem_.roles.scale;
    if (scale >= 0) out.blocks[at(scale)] = 2.0 * one * one * v_ * squares;
  }

 private:
  struct Single {
    S S_h, C_hh, b;
    double total = 1;               // of the law of U_h
    std::vector<S> mean, variance;  // derivatives, by component
  };
  struct Pair {
    S C_hk, b_I, b_J;
    double total = 1;    // of the law of (U_I, U_J)
    std::vector<S> bar;  // five derivatives for each component, as `contract` gives them
  };
  struct Scratch {
    std::vector<S> node, rows, line, scaled, product, row_weight, square, transposed, pair_tables,
        coefficients;
  };

  void take(const TokenLaws<S>& laws, const std::vector<S>& blocks, bool with_defect) {
    const auto [bias, scale] = problem_.roles;
    laws_ = &laws;
    blocks_ = blocks.size();
    b_ = bias >= 0 ? blocks.data() + bias : nullptr;
    v_ = scale >= 0 ? blocks[at(scale)] : S(1.0);
    with_defect_ = with_defect;
  }

  /// Where it pays, side by side.
  template <class Body>
  void run(std::size_t count, const Body& body) {
    if (plan_.cost(problem_.H, laws_->components) > 200'000) {
      problem_.workers->for_each_block(count, [&](std::size_t i, int worker) {
        prepare(scratch_[at(worker)]);
        body(i, scratch_[at(worker)]);
      });
    } else {
      prepare(scratch_[0]);
      for (std::size_t i = 0; i < count; ++i) body(i, scratch_[0]);
    }
  }

  void again() {
    run(pair_.size(), [&](std::size_t i, Scratch& s) { pair(i, s); });
  }

  void add_bias(int h, const S& x, LossAndBars<S>& out) const {
    if (problem_.roles.bias >= 0) out.blocks[at(problem_.roles.bias + h)] += x;
  }
  /// Returns what the pair adds to sum_hh' C_hh'.
  S add_pair(std::size_t i, LossAndBars<S>& out) const {
    const int I = plan_.pairs[i].I, J = plan_.pairs[i].J;
    const Pair& p = pair_[i];
    add_bias(I, p.b_I, out);
    add_bias(J, p.b_J, out);
    for (int c = 0; c < laws_->components; ++c) {
      const S* bar = p.bar.data() + 5 * c;
      out.laws.mean(c, I) += bar[0];
      out.laws.mean(c, J) += bar[1];
      out.laws.q(c, I, I) += bar[2];
      out.laws.q(c, J, J) += bar[3];
      out.laws.q(c, I, J) += 0.5 * bar[4];
      out.laws.q(c, J, I) += 0.5 * bar[4];
    }
    return 2.0 * p.C_hk;
  }

  std::size_t table_size(int group) const {
    return at(plan_.terms) * at(groups_[group].count) * at(plan_.ld);
  }
  S* table(int h, int group, int order) {
    return tables_[at(2 * h + group)].data() + at(order) * table_size(group);
  }

  /// Room for a worker, when it first has something to do.
  void prepare(Scratch& s) const {
    if (!s.line.empty()) return;
    const std::size_t n = at(plan_.nodes), ld = at(plan_.ld);
    std::size_t rank = 0;
    for (const PairPlan& pair : plan_.pairs) rank = std::max(rank, at(pair.rank));
    const std::size_t width = rank * at(groups_[1].count);
    s.line.resize(12 * ld);
    if (plan_.terms > 1) s.rows.resize(5 * at(plan_.z.size()) * ld);
    s.scaled.resize(width * ld);
    s.product.resize(6 * width * ld);
    s.row_weight.resize(width);
    if (plan_.pairs.empty()) return;
    s.square.resize(kSquares * n * ld);
    s.transposed.resize(2 * n * ld);
  }

  /// Nodes of one score minus the centre of u, as exponentials if all are moderate.
  Given score_nodes(const Rule& rule, const S& mean, const S& sigma, std::vector<S>& out) const {
    using std::exp;
    out.resize(at(rule.size()));
    bool moderate = plan_.moderate;
    for (int i = 0; i < rule.size(); ++i) {
      out[at(i)] = mean + sigma * rule.x[at(i)];
      moderate = moderate && std::abs(value_of(out[at(i)])) < kLargestLog;
    }
    if (!moderate) return Given::logs;
    for (S& x : out) x = exp(x);
    return Given::exponentials;
  }
  const double* nodes_of(int h, Given given) const {
    return (given == Given::logs ? plan_.u : plan_.e).data() + at(h) * at(plan_.ld);
  }

  /// What the sum rules lack, in units of the loss, but for rounding: a power L of g has a
  /// relative error of L roundings.
  double defect(double v) const {
    const double H = problem_.H;
    const double rounding = 0x1p-50 * (problem_.L + plan_.nodes);
    const auto lack = [&](double total) {
      return std::isfinite(total) ? std::max(0.0, std::abs(total - 1) - rounding) : HUGE_VAL;
    };
    double sum = 0;
    for (const Single& s : single_) sum += (2 * std::abs(v) / H + v * v / (H * H)) * lack(s.total);
    for (const Pair& p : pair_) sum += 2 * v * v / (H * H) * lack(p.total);
    return sum;
  }

  /// The means of f and its derivatives over one score; in parts that do not take long.
  void sum_in_parts(Given given, const std::vector<S>& nodes, const std::vector<double>& weight,
                    const double* u, int orders, S* const* out) const {
    constexpr int kPart = 64;
    for (int j = 0; j < plan_.ld; j += kPart) {
      if (nodes.size() > 1024) problem_.workers->check_go_on();
      S* part[5] = {};
      for (int a = 0; a < orders; ++a) part[a] = out[a] + j;
      derivative_sum(given, static_cast<int>(nodes.size()), nodes.data(), weight.data(),
                     std::min(kPart, plan_.ld - j), u + j, orders, part);
    }
  }

  /// Coefficients of f and its derivatives in Hermite polynomials, for every component:
  ///   c_n^(a)(u) = E p_n(z) f^(a)(u + sigma z) = ((n+1) ... (n+a))^(1/2) sigma^-a c_(n+a)^(0)(u),
  /// the latter by parts, which spares the derivatives where sigma is not small.
  void make_tables(int h, Scratch& s) {
    const int ld = plan_.ld, nz = plan_.z.size();
    S* rows[5];
    for (int a = 0; a < 5; ++a) rows[a] = s.rows.data() + at(a) * at(nz) * at(ld);
    for (int g = 0; g < 2; ++g) {
      for (int k = 0; k < groups_[g].count; ++k) {
        const int c = groups_[g].first + k;
        const S sigma = deviation(laws_->q(c, h, h));
        const Given given =
            score_nodes(plan_.z, laws_->mean(c, h) + plan_.centre[at(h)], sigma, s.node);
        S* fourth = fourth_.data() + at((h * laws_->components + c) * ld);
        if (plan_.terms == 1) {
          S* out[5] = {nullptr, nullptr, nullptr, nullptr, fourth};
          for (int a = 0; a < kOrders; ++a) out[a] = table(h, g, a) + at(k * ld);
          sum_in_parts(given, s.node, plan_.z.w, nodes_of(h, given), 5, out);
          continue;
        }
        problem_.workers->check_go_on();
        derivative_rows(given, nz, s.node.data(), ld, nodes_of(h, given), 5, rows);
        project(1, rows[4], fourth, ld);
        const int row = groups_[g].count * ld;
        if (plan_.folded && value_of(sigma) >= kSmallestShifted) {
          s.coefficients.resize(at(plan_.terms + kShifts) * at(ld));
          fold(rows[0]);
          project_folded(plan_.terms + kShifts, rows[0], s.coefficients.data(), ld);
          for (int a = 0; a < kOrders; ++a) shift(a, sigma, s, table(h, g, a) + at(k * ld), row);
          continue;
        }
        for (int a = 0; a < kOrders; ++a) {
          S* out = table(h, g, a) + at(k * ld);
          if (plan_.folded) {
            fold(rows[a]);
            project_folded(plan_.terms, rows[a], out, row);
          } else {
            project(plan_.terms, rows[a], out, row);
          }
        }
      }
    }
  }

  /// Rows of z_i and -z_i: to their sum, where z_i is not negative, and to the difference.
  void fold(S* rows) const {
    const std::ptrdiff_t nz = plan_.z.size(), ld = plan_.ld;
    for (std::ptrdiff_t i = nz / 2, j = (nz - 1) / 2; i < nz; ++i, --j) {
      for (std::ptrdiff_t u = 0; i != j && u < ld; ++u) {
        const S here = rows[i * ld + u], mirrored = rows[j * ld + u];
        rows[i * ld + u] = here + mirrored;
        rows[j * ld + u] = here - mirrored;
      }
    }
  }

  /// Even polynomials over the sums; odd ones, which vanish at zero, over the differences, whose
  /// rows are in the order of -z.
  void project_folded(int terms, const S* rows, S* out, int out_row) const {
    const int nz = plan_.z.size(), half = nz / 2, ld = plan_.ld;
    const std::ptrdiff_t two_rows = 2 * static_cast<std::ptrdiff_t>(out_row);
    multiply_by((terms + 1) / 2, nz - half, {plan_.project.data() + half, 2 * nz, 1},
                rows + static_cast<std::ptrdiff_t>(half) * ld, out, two_rows);
    multiply_by(terms / 2, half, {plan_.project.data() + 2 * nz - 1, 2 * nz, -1}, rows,
                out + out_row, two_rows);
  }

  void shift(int a, const S& sigma, const Scratch& s, S* out, int out_row) const {
    const int ld = plan_.ld;
    for (int n = 0; n < plan_.terms; ++n, out += out_row) {
      S by = 1.0;
      for (int i = 1; i <= a; ++i) by = by * std::sqrt(double(n + i)) / sigma;
      const S* from = s.coefficients.data() + at(n + a) * at(ld);
      for (int u = 0; u < ld; ++u) out[u] = by * from[u];
    }
  }

  void project(int terms, const S* rows, S* out, int out_row) const {
    multiply_by(terms, plan_.z.size(), {plan_.project.data(), plan_.z.size(), 1}, rows, out,
                out_row);
  }

  /// Products with numbers that have no tangent.
  void multiply_by(int rows, int inner, Strided<double> a, const S* b, S* out,
                   std::ptrdiff_t out_row) const {
    if constexpr (std::is_same_v<S, double>) {
      multiply(rows, inner, plan_.ld, a, b, out, out_row);
    } else {
      std::vector<S> lifted;
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < inner; ++i) lifted.emplace_back(a.data[r * a.row + i * a.column]);
      }
      multiply(rows, inner, plan_.ld, Strided<S>{lifted.data(), inner, 1}, b, out, out_row);
    }
  }

  void single(int h, Scratch& s) {
    using std::exp;
    const int ld = plan_.ld, H = problem_.H, C = laws_->components;
    const double L = problem_.L;
    Single& out = single_[at(h)];
    out.mean.assign(at(C), S(0.0));
    out.variance.assign(at(C), S(0.0));
    // g1 and its derivatives, weighted over components; powers of g0; e_h times the weights.
    S* g1[5];
    for (int a = 0; a < 5; ++a) g1[a] = s.line.data() + at(a * ld);
    const auto one_score = [&](int c, int a) -> const S* {
      if (a == 4) return fourth_.data() + at((h * C + c) * ld);
      return c == 0 ? table(h, 0, a) : table(h, 1, a) + at((c - 1) * ld);
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
      sink[j] = b_ ? sink_at(h, j) : S(0.0);
      w[j] = plan_.weight[at(h * ld + j)] * exp(-sink[j]);
      x[j] = 2.0 / H * v_ * w[j];
      y[j] = 1.0 / (double(H) * H) * v_ * v_ * w[j];
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

  /// e^(u+b) at node j; exp(-e^(u+b)) is 0 long before the largest.
  S sink_at(int h, int j) const {
    using std::exp;
    const S t = b_[h] + (plan_.centre[at(h)] + plan_.u[at(h * plan_.ld + j)]);
    return value_of(t) < std::log(kLargestExponent) ? S(exp(t)) : S(kLargestExponent);
  }

  /// Tables of a conditional pair, for one group: A over nodes of the first score, B over
  /// the second score given the first. Rows are ordered (node, component).
  void conditional_tables(const PairPlan& pair, int g, Scratch& s, PairTables<S>& t) {
    const int ld = plan_.ld, K = groups_[g].count, rank = pair.rank;
    const auto size = at(rank) * at(K * ld);
    s.pair_tables.resize(8 * size);
    for (int a = 0; a < kOrders; ++a) {
      t.A[a] = s.pair_tables.data() + at(a) * size;
      t.B[a] = s.pair_tables.data() + at(4 + a) * size;
    }
    std::vector<S> first, second;
    for (int k = 0; k < K; ++k) {
      const int c = groups_[g].first + k;
      const S q = laws_->q(c, pair.I, pair.I), x = laws_->q(c, pair.I, pair.J);
      const S sigma = deviation(q);
      const S slope = value_of(q) > 0 ? x / q : S(0.0);
      const S rest = deviation(laws_->q(c, pair.J, pair.J) - slope * x);
      const S centre = laws_->mean(c, pair.I) + plan_.centre[at(pair.I)];
      const Given given = score_nodes(pair.first, centre, sigma, first);
      for (int r = 0; r < rank; ++r) {
        const auto row = at(r * K + k) * at(ld);
        S *A[4], *B[4];
        for (int a = 0; a < kOrders; ++a) {
          A[a] = const_cast<S*>(t.A[a]) + row;
          B[a] = const_cast<S*>(t.B[a]) + row;
        }
        derivative_rows(given, 1, &first[at(r)], ld, nodes_of(pair.I, given), kOrders, A);
        const S shift = slope * sigma * pair.first.x[at(r)];
        const S mean = laws_->mean(c, pair.J) + plan_.centre[at(pair.J)] + shift;
        const Given other = score_nodes(pair.second, mean, rest, second);
        if (r % 64 == 0) problem_.workers->check_go_on();
        sum_in_parts(other, second, pair.second.w, nodes_of(pair.J, other), kOrders, B);
      }
    }
  }

  /// Fills the tables of a pair and group, and the weights of their rows.
  int pair_tables(const PairPlan& pair, int g, Scratch& s, PairTables<S>& t) {
    const int K = groups_[g].count;
    if (pair.conditional) {
      conditional_tables(pair, g, s, t);
    } else {
      for (int a = 0; a < kOrders; ++a) {
        t.A[a] = table(pair.I, g, a);
        t.B[a] = table(pair.J, g, a);
      }
    }
    for (int k = 0; k < K; ++k) {
      const int c = groups_[g].first + k;
      const S sigma_I = deviation(laws_->q(c, pair.I, pair.I));
      const S sigma_J = deviation(laws_->q(c, pair.J, pair.J));
      const S scale = sigma_I * sigma_J;
      const S rho = value_of(scale) > 1e-300 ? laws_->q(c, pair.I, pair.J) / scale : S(0.0);
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
    double total = 0;
    for (int i = 0; i < n; ++i) {
      const std::size_t I = at(plan.I) * at(ld) + at(i);
      const double sink_I = value_of(sink_[I]);
      double row = 0;
      for (int j = 0; j < n; ++j) {
        const std::size_t ij = at(i) * at(ld) + at(j), J = at(plan.J) * at(ld) + at(j);
        const double sink_J = value_of(sink_[J]);
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
        row += value_of(weight_[J]) * density;
      }
      total += value_of(weight_[I]) * row;
    }
    return total;
  }

  /// C_IJ, its derivatives with respect to the biases, and Gb and Kb.
  void sum_pair(const PairPlan& plan, const Squares& q, S* column, Pair& out) const {
    const int n = plan_.nodes, ld = plan_.ld, H = problem_.H;
    const double L = problem_.L;
    const S *w_I = weight_.data() + at(plan.I * ld), *w_J = weight_.data() + at(plan.J * ld);
    const S *sink_I = sink_.data() + at(plan.I * ld), *sink_J = sink_.data() + at(plan.J * ld);
    const S factor = 2.0 / (double(H) * H) * v_ * v_;
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
  void pull_back_pair(const PairPlan& plan, int g, const Squares& q, Scratch& s, Pair& out) {
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
    const bool shared = problem_.signal->atoms || laws_->components == 2;
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
    const auto [first, count] = groups_[g];
    for (int k = 0; k < count; ++k) {
      contract(k, count, rows, ld, t, s.row_weight.data(), out.bar.data() + at(5 * (first + k)));
    }
    out.bar[at(5 * first + 4)] += direct;
  }

  void pair(std::size_t index, Scratch& s) {
    const PairPlan& plan = plan_.pairs[index];
    Pair& out = pair_[index];
    const Squares q = squares(s);
    for (int g = 0; g < 2; ++g) {
      PairTables<S> t{};
      const int rows = pair_tables(plan, g, s, t);
      sum_of_products(rows, t.A[0], t.B[0], s, q.G[g]);
      sum_of_products(rows, t.A[1], t.B[1], s, q.K[g]);
      if (!with_defect_) continue;
      sum_of_products(rows, t.A[1], t.B[0], s, q.Gu[g]);
      sum_of_products(rows, t.A[0], t.B[1], s, q.Gv[g]);
    }
    token_powers(plan_.nodes * plan_.ld, problem_.L, q.G[0], q.P1, q.P2, q.P3);
    if (with_defect_) out.total = total_of_pair(plan, q);
    sum_pair(plan, q, s.line.data(), out);
    out.bar.resize(at(5 * laws_->components));
    for (int g = 0; g < 2; ++g) pull_back_pair(plan, g, q, s, out);
  }

  QuadratureProblem problem_;
  const HeadsPlan& plan_;
  Group groups_[2];
  const TokenLaws<S>* laws_ = nullptr;
  const S* b_ = nullptr;
  S v_ = 1.0;
  std::size_t blocks_ = 0;  // how many parameters there are
  bool with_defect_ = false;
  std::vector<std::vector<S>> tables_;  // [h][group]: [order][term][component][ld]
  std::vector<S> fourth_;               // [h][component][ld]: fourth derivative of g
  std::vector<S> sink_, weight_;        // [h][ld]: e^(u+b), and the weight times e_h
  std::vector<Single> single_;
  std::vector<Pair> pair_;
  std::vector<Scratch> scratch_;
};

}  // namespace headflow::factorised
