#pragma once

// Tables of one score of one head, for heads_terms.h: f(t) = exp(-e^t) and its derivatives at the
// nodes u, averaged over the score with Hermite polynomials or without.

#include <cmath>

#include "core/index.h"
#include "expectation/factorised/heads_plan.h"
#include "expectation/factorised/kernels.h"

namespace headflow::factorised {

inline constexpr int kOrders = 4;                // derivatives of f in the tables of a pair
inline constexpr double kSmallestShifted = 1.0;  // sigma: below, powers of 1/sigma cost digits

/// Components with a common role: the ordinary token's one, or the relevant token's K.
struct Group {
  int first, count;
};

template <class S>
class HeadTables {
 public:
  struct Scratch {
    std::vector<S> node, rows, coefficients;
  };

  HeadTables(const QuadratureProblem& problem, const HeadsPlan& plan)
      : problem_(problem), plan_(plan), groups_{{0, 1}, {1, problem.signal->count() - 1}} {
    tables_.resize(at(problem.H * 2));
    for (int h = 0; h < problem.H; ++h) {
      for (int g = 0; g < 2; ++g) {
        tables_[at(2 * h + g)].resize(table_size(g) * kOrders);
      }
    }
    fourth_.resize(at(problem.H * problem.signal->count() * plan.ld));
  }

  /// [0]: of the ordinary token, [1]: of the relevant one.
  const Group& group(int g) const { return groups_[g]; }
  /// Derivative number `order` < kOrders: [term][component][ld].
  const S* table(int h, int group, int order) const {
    return tables_[at(2 * h + group)].data() + at(order) * table_size(group);
  }
  /// The fourth derivative of g.
  const S* fourth(int h, int component) const {
    return fourth_.data() + at((h * problem_.signal->count() + component) * plan_.ld);
  }

  void prepare(Scratch& s) const {
    if (plan_.terms > 1) s.rows.resize(5 * at(plan_.z.size()) * at(plan_.ld));
  }

  /// Coefficients of f and its derivatives in Hermite polynomials, for every component:
  ///   c_n^(a)(u) = E p_n(z) f^(a)(u + sigma z) = ((n+1) ... (n+a))^(1/2) sigma^-a c_(n+a)^(0)(u),
  /// the latter by parts, which spares the derivatives where sigma is not small.
  void make(const TokenLaws<S>& laws, int h, Scratch& s) {
    const int ld = plan_.ld, nz = plan_.z.size();
    S* rows[5];
    for (int a = 0; a < 5; ++a) rows[a] = s.rows.data() + at(a) * at(nz) * at(ld);
    for (int g = 0; g < 2; ++g) {
      for (int k = 0; k < groups_[g].count; ++k) {
        const int c = groups_[g].first + k;
        const S sigma = deviation(laws.q(c, h, h));
        const Given given =
            score_nodes(plan_.z, laws.mean(c, h) + plan_.centre[at(h)], sigma, s.node);
        S* fourth = fourth_.data() + at((h * problem_.signal->count() + c) * ld);
        if (plan_.terms == 1) {
          S* out[5] = {nullptr, nullptr, nullptr, nullptr, fourth};
          for (int a = 0; a < kOrders; ++a) out[a] = room(h, g, a) + at(k * ld);
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
          for (int a = 0; a < kOrders; ++a) shift(a, sigma, s, room(h, g, a) + at(k * ld), row);
          continue;
        }
        for (int a = 0; a < kOrders; ++a) {
          S* out = room(h, g, a) + at(k * ld);
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

 private:
  std::size_t table_size(int group) const {
    return at(plan_.terms) * at(groups_[group].count) * at(plan_.ld);
  }
  S* room(int h, int group, int order) {
    return tables_[at(2 * h + group)].data() + at(order) * table_size(group);
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

  const QuadratureProblem& problem_;
  const HeadsPlan& plan_;
  Group groups_[2];
  std::vector<std::vector<S>> tables_;  // [h][group]: [order][term][component][ld]
  std::vector<S> fourth_;               // [h][component][ld]
};

}  // namespace headflow::factorised
