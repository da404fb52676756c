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

#include "expectation/factorised/heads_pairs.h"

namespace headflow::factorised {

template <class S>
class Heads {
 public:
  Heads(const QuadratureProblem& problem, const HeadsPlan& plan)
      : problem_(problem),
        plan_(plan),
        tables_(problem_, plan),
        singles_(problem_, plan),
        pairs_(problem_, plan, point_, tables_, singles_) {
    scratch_.resize(at(problem.workers->count()));
  }
  Heads(const Heads&) = delete;  // its parts refer to each other
  Heads& operator=(const Heads&) = delete;

  void evaluate(const TokenLaws<S>& laws, const std::vector<S>& blocks, bool with_defect,
                LossAndBars<S>& out) {
    take(laws, blocks, with_defect);
    run(at(problem_.H), [&](std::size_t h, Scratch& s) {
      tables_.make(laws, static_cast<int>(h), s.tables);
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
    pairs_.prepare(scratch_[0]);
    if (new_tables) tables_.make(laws, h, scratch_[0].tables);
    single(h, scratch_[0]);
    std::vector<std::size_t> pairs;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
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
    const int H = problem_.H, C = point_.laws->components;
    out.laws.reset(H, C);
    out.blocks.assign(blocks_, S(0.0));
    S hits = 0.0, squares = 0.0;
    for (int h = 0; h < H; ++h) {
      const SingleTerm<S>& s = singles_[h];
      hits += s.S_h;
      squares += s.C_hh;
      add_bias(h, s.b, out);
      for (int c = 0; c < C; ++c) {
        out.laws.q(c, h, h) += s.variance[at(c)];
        out.laws.mean(c, h) += s.mean[at(c)];
      }
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) squares += add_pair(i, out);
    if (with_defect_) out.defect = defect(value_of(point_.v));
    const double one = 1.0 / H;
    out.loss = 1.0 - 2.0 * one * point_.v * hits + one * one * point_.v * point_.v * squares;
    const int scale = problem_.roles.scale;
    if (scale >= 0)
      out.blocks[at(scale)] = -2.0 * one * hits + 2.0 * one * one * point_.v * squares;
  }
  /// The term of one pair alone.
  void of_pair(std::size_t i, LossAndBars<S>& out) const {
    out.laws.reset(problem_.H, point_.laws->components);
    out.blocks.assign(blocks_, S(0.0));
    const S squares = add_pair(i, out);
    const double one = 1.0 / problem_.H;
    out.loss = one * one * point_.v * point_.v * squares;
    const int scale = problem_.roles.scale;
    if (scale >= 0) out.blocks[at(scale)] = 2.0 * one * one * point_.v * squares;
  }

 private:
  using Scratch = typename PairTerms<S>::Scratch;

  void take(const TokenLaws<S>& laws, const std::vector<S>& blocks, bool with_defect) {
    const auto [bias, scale] = problem_.roles;
    point_.laws = &laws;
    blocks_ = blocks.size();
    point_.b = bias >= 0 ? blocks.data() + bias : nullptr;
    point_.v = scale >= 0 ? blocks[at(scale)] : S(1.0);
    with_defect_ = with_defect;
  }

  /// Where it pays, side by side.
  template <class Body>
  void run(std::size_t count, const Body& body) {
    if (plan_.cost(problem_.H, point_.laws->components) > 200'000) {
      problem_.workers->for_each_block(count, [&](std::size_t i, int worker) {
        pairs_.prepare(scratch_[at(worker)]);
        body(i, scratch_[at(worker)]);
      });
    } else {
      pairs_.prepare(scratch_[0]);
      for (std::size_t i = 0; i < count; ++i) body(i, scratch_[0]);
    }
  }

  void again() {
    run(pairs_.size(), [&](std::size_t i, Scratch& s) { pair(i, s); });
  }

  void add_bias(int h, const S& x, LossAndBars<S>& out) const {
    if (problem_.roles.bias >= 0) out.blocks[at(problem_.roles.bias + h)] += x;
  }
  /// Returns what the pair adds to sum_hh' C_hh'.
  S add_pair(std::size_t i, LossAndBars<S>& out) const {
    const int I = plan_.pairs[i].I, J = plan_.pairs[i].J;
    const PairTerm<S>& p = pairs_[i];
    add_bias(I, p.b_I, out);
    add_bias(J, p.b_J, out);
    for (int c = 0; c < point_.laws->components; ++c) {
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

  /// What the sum rules lack, in units of the loss, but for rounding: a power L of g has a
  /// relative error of L roundings.
  double defect(double v) const {
    const double H = problem_.H;
    const double rounding = 0x1p-50 * (problem_.L + plan_.nodes);
    const auto lack = [&](double total) {
      return std::isfinite(total) ? std::max(0.0, std::abs(total - 1) - rounding) : HUGE_VAL;
    };
    double sum = 0;
    for (int h = 0; h < problem_.H; ++h) {
      sum += (2 * std::abs(v) / H + v * v / (H * H)) * lack(singles_[h].total);
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      sum += 2 * v * v / (H * H) * lack(pairs_[i].total);
    return sum;
  }

  void single(int h, Scratch& s) { singles_.evaluate(point_, tables_, h, s.line); }
  void pair(std::size_t i, Scratch& s) { pairs_.evaluate(i, with_defect_, s); }

  QuadratureProblem problem_;
  const HeadsPlan& plan_;
  HeadsPoint<S> point_;
  std::size_t blocks_ = 0;  // how many parameters there are
  bool with_defect_ = false;
  HeadTables<S> tables_;
  SingleTerms<S> singles_;
  PairTerms<S> pairs_;
  std::vector<Scratch> scratch_;
};

}  // namespace headflow::factorised
