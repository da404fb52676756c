// B-softmax: all heads share one denominator, so a token enters through one number, its weight
// w = sum_h e^(chi_h + b_h). With moments of one token (index 0: ordinary, 1: relevant)
//   s_k(u) = E[ y^k e^(-y) ], y = e^u w,
//   E = 1 + int [ (s2_1 - 2 s1_1) s0_0^(L-1) + (L-1) s2_0 s0_1 s0_0^(L-2) ] du.
// The expectations are over the r = rank Q normals behind the H scores (r = min(F, H) if R = 0).
// The scores are chi = mu + A zeta with A = Q U (U^T Q U)^(-1/2), which is a root of Q for any Q of
// rank r, and smooth in Q: U, the principal directions, and the nodes zeta are frozen. If Q gains
// rank, A A^T misses variances of second order in the change; the gradient is right to first order.
// Derivatives by Price's theorem: with p_h = e^(chi_h + b_h) / w and t = log y,
//   d/dmu_h -> Phi' p_h,   d/dQ_hk -> ((Phi'' - Phi') p_h p_k + delta_hk Phi' p_h) / 2.
// Cost: nodes x (components x points in u + H^2).
// Check: the shares of all tokens sum to one, int [ s1_1 s0_0^(L-1) + (L-1) s1_0 s0_1 s0_0^(L-2) ]
// du = 1; what is missing is the defect. A common shift of all b changes nothing and is taken out.

#include <algorithm>
#include <cmath>
#include <map>

#include "core/index.h"
#include "expectation/factorised/joint_kernels.h"
#include "expectation/factorised/kernels.h"
#include "expectation/factorised/node_density.h"
#include "expectation/factorised/quadrature.h"
#include "expectation/factorised/score_nodes.h"

namespace headflow::factorised {
namespace {

constexpr int kChunk = 128;  // what belongs to it stays in L1
constexpr std::int64_t kMostNodes = 1 << 22;
constexpr std::int64_t kMostNumbers = 1 << 24;  // coordinates and weights of all nodes
constexpr int kMostPoints = 1 << 16;            // in u
constexpr double kFewestPoints = 5;

/// Components with the same covariance, and the nodes for it.
struct CovarianceGroup {
  int first, count;  ///< components
  Matrix basis;      ///< U, H x r
  NodeSet nodes;
  std::vector<double> reach;  ///< largest |zeta| in each direction
};

struct JointPlan {
  std::vector<CovarianceGroup> groups;
  double centre = 0;
  double common = 0;                     ///< shift of all b that is taken out
  std::vector<double> u, scale, weight;  ///< u - centre, its exponentials, and the weights in u
  double largest_u = 0;                  ///< of |u - centre|
};

/// An array of scalars, values and tangents apart.
template <class S>
class Array {
 public:
  Array() = default;
  explicit Array(std::size_t n) { resize(n); }
  void resize(std::size_t n) {
    value_.assign(n, 0.0);
    if (kDual) tangent_.assign(n, 0.0);
  }
  Numbers numbers() { return {value_.data(), kDual ? tangent_.data() : nullptr}; }
  S operator[](std::size_t i) const {
    if constexpr (kDual) {
      return {value_[i], tangent_[i]};
    } else {
      return value_[i];
    }
  }
  void set(std::size_t i, const S& x) {
    value_[i] = value_of(x);
    if constexpr (kDual) tangent_[i] = x.tangent;
  }

 private:
  static constexpr bool kDual = std::is_same_v<S, Dual>;
  std::vector<double> value_, tangent_;
};

/// A = Q U C^(-T), C C^T = U^T Q U.
template <class S>
void score_root(const TokenLaws<S>& laws, const CovarianceGroup& group, Array<S>& A) {
  const int H = laws.H, r = static_cast<int>(group.basis.cols());
  std::vector<S> QU(at(H * r)), C(at(r * r));
  for (int h = 0; h < H; ++h) {
    for (int j = 0; j < r; ++j) {
      for (int k = 0; k < H; ++k)
        QU[at(h * r + j)] += laws.q(group.first, h, k) * group.basis(k, j);
    }
  }
  for (int i = 0; i < r; ++i) {  // Cholesky; a vanishing pivot is a direction without variance
    for (int j = 0; j <= i; ++j) {
      S sum = 0.0;
      for (int h = 0; h < H; ++h) sum += group.basis(h, i) * QU[at(h * r + j)];
      for (int k = 0; k < j; ++k) sum -= C[at(i * r + k)] * C[at(j * r + k)];
      if (i == j) {
        C[at(i * r + i)] = deviation(sum);
      } else if (value_of(C[at(j * r + j)]) > 0) {
        C[at(i * r + j)] = sum / C[at(j * r + j)];
      }
    }
  }
  for (int h = 0; h < H; ++h) {  // forward substitution of each row of QU
    for (int j = 0; j < r; ++j) {
      S sum = QU[at(h * r + j)];
      for (int k = 0; k < j; ++k) sum -= C[at(j * r + k)] * A[at(h * r + k)];
      A.set(at(h * r + j), value_of(C[at(j * r + j)]) > 0 ? S(sum / C[at(j * r + j)]) : S(0.0));
    }
  }
}

template <class S>
class Joint {
 public:
  Joint(const QuadratureProblem& problem, const JointPlan& plan) : problem_(problem), plan_(plan) {
    std::int64_t nodes = 0;
    for (const CovarianceGroup& group : plan.groups) nodes += group.nodes.stride;
    block_ = std::max<std::int64_t>(4 * kChunk, (nodes / 64 + kChunk - 1) / kChunk * kChunk);
    for (const CovarianceGroup& group : plan.groups) {
      A_.emplace_back(at(problem.H) * at(group.basis.cols()));
      for (std::int64_t from = 0; from < group.nodes.stride; from += block_) {
        blocks_.push_back({static_cast<int>(&group - plan.groups.data()),
                           from,
                           std::min(from + block_, static_cast<std::int64_t>(group.nodes.stride)),
                           {},
                           {},
                           {}});
      }
    }
    scratch_.resize(at(problem.workers->count()));
    const auto H = at(problem.H);
    for (Scratch& s : scratch_) {
      s.e.resize(H * kChunk);
      s.w.resize(kChunk);
      s.adjoint.resize((H + 3) * kChunk);
    }
  }

  void evaluate(const TokenLaws<S>& laws, const std::vector<S>& blocks, LossAndBars<S>& out) {
    const S* b = blocks.data() + problem_.roles.bias;
    using std::exp;
    const int H = problem_.H, C = laws.components, n = static_cast<int>(plan_.u.size());
    const double L = problem_.L;
    shift_.resize(at(H));
    for (int h = 0; h < H; ++h) shift_.set(at(h), b[h] - plan_.common + plan_.centre);
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) score_root(laws, plan_.groups[g], A_[g]);
    given_ = moderate(laws) ? Given::exponentials : Given::logs;
    factor_.resize(at(C * H));
    for (int c = 0; c < C; ++c) {
      for (int h = 0; h < H; ++h) {
        const S mean = laws.mean(c, h);
        factor_.set(at(c * H + h), given_ == Given::logs ? mean : S(exp(mean)));
      }
    }

    for_each_block([&](Block& block, Scratch& s) { moments(block, s, n); });
    std::vector<S> moment[2] = {std::vector<S>(at(3 * n)), std::vector<S>(at(3 * n))};
    for (const Block& block : blocks_) {
      const CovarianceGroup& group = plan_.groups[at(block.group)];
      for (int k = 0; k < group.count; ++k) {
        const int c = group.first + k;
        for (int i = 0; i < 3 * n; ++i) {
          moment[c > 0][at(i)] += problem_.signal->weight[at(c)] * block.sums[at(k * 3 * n + i)];
        }
      }
    }

    const S *s0 = moment[0].data(), *s1 = s0 + n, *s2 = s1 + n;
    const S *r0 = moment[1].data(), *r1 = r0 + n, *r2 = r1 + n;
    std::vector<S> p1(at(padded(n))), p2(p1), p3(p1), base(at(padded(n)), S(1.0));
    std::copy_n(s0, n, base.begin());
    token_powers(padded(n), L, base.data(), p1.data(), p2.data(), p3.data());
    for (Array<S>& a : adjoint_) a.resize(at(6 * n));
    out.loss = 1.0;
    double total = 0;
    for (int u = 0; u < n; ++u) {
      const double W = plan_.weight[at(u)];
      const S own = r2[u] - 2.0 * r1[u], P2 = (L - 1) * W * p2[at(u)];
      out.loss += W * own * p1[at(u)] + P2 * s2[u] * r0[u];
      total += value_of(W * r1[u] * p1[at(u)] + P2 * s1[u] * r0[u]);
      const S a0 = P2 * own + (L - 1) * (L - 2) * W * p3[at(u)] * s2[u] * r0[u];
      set_adjoint(0, u, n, a0, S(0.0), P2 * r0[u]);
      set_adjoint(1, u, n, P2 * s2[u], -2.0 * W * p1[at(u)], W * p1[at(u)]);
    }

    // The loss has S twice and C once; a power L has a relative error of L roundings.
    out.defect = std::isfinite(total) ? 3 * std::max(0.0, std::abs(total - 1) - 0x1p-50 * (L + n))
                                      : HUGE_VAL;

    for_each_block([&](Block& block, Scratch& s) { adjoints(block, s, n); });
    out.laws.reset(H, C);
    out.blocks.assign(blocks.size(), S(0.0));
    for (const Block& block : blocks_) {
      const CovarianceGroup& group = plan_.groups[at(block.group)];
      for (int k = 0; k < group.count; ++k) {
        const int c = group.first + k;
        const double weight = problem_.signal->weight[at(c)];
        const auto total = [&](const Array<S>& lanes, std::size_t entry) {
          S sum = 0.0;
          for (std::size_t j = 0; j < 8; ++j) sum += lanes[entry * 8 + j];
          return weight * sum;
        };
        for (int h = 0; h < H; ++h) {
          const S mean = total(block.mean, at(k * H + h));
          out.laws.mean(c, h) += mean;
          out.blocks[at(problem_.roles.bias + h)] += mean;
          out.laws.q(c, h, h) += 0.5 * mean;
          for (int j = 0; j <= h; ++j) {
            const S cross = 0.5 * total(block.cross, at(k * H * (H + 1) / 2 + h * (h + 1) / 2 + j));
            out.laws.q(c, h, j) += cross;
            if (j < h) out.laws.q(c, j, h) += cross;
          }
        }
      }
    }
  }

 private:
  /// No exponential of a score, of u or of a product of both over- or underflows.
  bool moderate(const TokenLaws<S>& laws) const {
    double largest = 0;
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
      const CovarianceGroup& group = plan_.groups[g];
      const std::size_t r = group.reach.size();
      for (int h = 0; h < laws.H; ++h) {
        double mean = 0, noise = 0;
        for (int c = group.first; c < group.first + group.count; ++c) {
          mean = std::max(mean, std::abs(value_of(laws.mean(c, h))));
        }
        for (std::size_t j = 0; j < r; ++j) {
          noise += std::abs(value_of(A_[g][at(h) * r + j])) * group.reach[j];
        }
        largest = std::max(largest, mean + noise + std::abs(value_of(shift_[at(h)])));
      }
    }
    return largest < kLargestLog && plan_.largest_u < kLargestLog;
  }
  const double* scale() const { return (given_ == Given::logs ? plan_.u : plan_.scale).data(); }

  struct Block {
    int group;
    std::int64_t from, to;
    Array<S> sums, mean, cross;
  };
  struct Scratch {
    Array<S> e, w, adjoint;
  };

  template <class Body>
  void for_each_block(const Body& body) {
    problem_.workers->for_each_block(
        blocks_.size(), [&](std::size_t i, int worker) { body(blocks_[i], scratch_[at(worker)]); });
  }

  template <class Body>
  void for_each_chunk(const Block& block, Scratch& s, const Body& body) {
    const CovarianceGroup& group = plan_.groups[at(block.group)];
    for (std::int64_t i = block.from; i < block.to; i += kChunk) {
      const NodeChunk chunk{problem_.H,
                            group.nodes.dimensions,
                            static_cast<int>(std::min<std::int64_t>(kChunk, block.to - i)),
                            group.nodes.zeta.data() + i,
                            group.nodes.stride,
                            group.nodes.weight.data() + i};
      node_exponentials(given_, chunk, A_[at(block.group)].numbers(), shift_.numbers(),
                        s.e.numbers());
      for (int k = 0; k < group.count; ++k) body(chunk, group, k);
    }
  }

  void moments(Block& block, Scratch& s, int n) {
    block.sums.resize(at(plan_.groups[at(block.group)].count * 3 * n));
    for_each_chunk(block, s, [&](const NodeChunk& chunk, const CovarianceGroup& group, int k) {
      node_moments(given_, chunk, factor_.numbers() + (group.first + k) * problem_.H, s.e.numbers(),
                   n, scale(), s.w.numbers(), block.sums.numbers() + k * 3 * n);
    });
  }

  void adjoints(Block& block, Scratch& s, int n) {
    const int H = problem_.H, pairs = H * (H + 1) / 2;
    const int count = plan_.groups[at(block.group)].count;
    block.mean.resize(at(count * H * 8));
    block.cross.resize(at(count * pairs * 8));
    for_each_chunk(block, s, [&](const NodeChunk& chunk, const CovarianceGroup& group, int k) {
      const int c = group.first + k;
      node_adjoints(given_, chunk, factor_.numbers() + c * H, s.e.numbers(), n, scale(),
                    adjoint_[c > 0].numbers(), s.adjoint.numbers(),
                    block.mean.numbers() + k * H * 8, block.cross.numbers() + k * pairs * 8);
    });
  }

  /// Coefficients of Phi' and Phi'' - Phi' from those of Phi = a0 e^(-y) + a1 y e^(-y) + a2 y^2
  /// e^(-y).
  void set_adjoint(int token, int u, int n, const S& a0, const S& a1, const S& a2) {
    const S c1 = a1 - a0, c2 = 2.0 * a2 - a1, c3 = -a2;
    const S all[] = {c1, c2, c3, c2 - c1, 2.0 * c3 - c2, a2};
    for (int k = 0; k < 6; ++k) adjoint_[token].set(at(k * n + u), all[k]);
  }

  QuadratureProblem problem_;
  const JointPlan& plan_;
  std::int64_t block_ = kChunk;
  Given given_ = Given::exponentials;
  std::vector<Array<S>> A_;
  Array<S> shift_, factor_;
  Array<S> adjoint_[2];
  std::vector<Block> blocks_;
  std::vector<Scratch> scratch_;
};

class JointQuadrature final : public LawQuadrature {
 public:
  JointQuadrature(const QuadratureProblem& problem, JointPlan plan)
      : problem_(problem), plan_(std::move(plan)), plain_(problem_, plan_) {}

  void evaluate(const TokenLaws<double>& laws, const std::vector<double>& blocks,
                bool /*with_defect: it costs nothing*/, LossAndBars<double>& out) override {
    plain_.evaluate(laws, blocks, out);
  }
  void evaluate(const TokenLaws<Dual>& laws, const std::vector<Dual>& blocks,
                LossAndBars<Dual>& out) override {
    if (!dual_) dual_ = std::make_unique<Joint<Dual>>(problem_, plan_);
    dual_->evaluate(laws, blocks, out);
  }
  bool sees_all() const override { return false; }
  double unseen_variance(const TokenLaws<double>& laws) const override {
    double most = 0;
    for (const CovarianceGroup& group : plan_.groups) {
      const auto r = group.basis.cols();
      if (r == laws.H) continue;
      Array<double> A(at(laws.H * r));
      score_root(laws, group, A);
      for (int h = 0; h < laws.H; ++h) {
        double unseen = laws.q(group.first, h, h);
        for (Eigen::Index j = 0; j < r; ++j) unseen -= A[at(h * r + j)] * A[at(h * r + j)];
        most = std::max(most, unseen);
      }
    }
    return most;
  }
  std::int64_t nodes() const override {
    std::int64_t sum = 0;
    for (const CovarianceGroup& group : plan_.groups) sum += group.nodes.count * group.count;
    return sum * static_cast<std::int64_t>(plan_.u.size());
  }

 private:
  QuadratureProblem problem_;
  JointPlan plan_;
  Joint<double> plain_;
  std::unique_ptr<Joint<Dual>> dual_;
};

/// Principal directions of a covariance, the important ones first, and how far they reach.
bool plan_group(const TokenLaws<double>& laws, double digits, double most_work,
                CovarianceGroup& group) {
  const int H = laws.H;
  const Eigen::Map<const Matrix> Q(laws.Q.data() + at(group.first * H * H), H, H);
  const SymmetricEigen solver(Q);
  std::vector<std::pair<double, int>> order;
  for (int i = 0; i < H; ++i) {
    const double spread = std::sqrt(std::max(0.0, solver.eigenvalues()[i]));
    if (spread * spread > 1e-14 * std::max(1e-10, solver.eigenvalues()[H - 1])) {
      order.emplace_back(-spread * solver.eigenvectors().col(i).cwiseAbs().maxCoeff(), i);
    }
  }
  std::sort(order.begin(), order.end());
  const auto r = static_cast<Eigen::Index>(order.size());
  group.basis.resize(H, r);
  Vector scales(r);
  for (Eigen::Index j = 0; j < r; ++j) {
    scales[j] = -order[at(j)].first;
    group.basis.col(j) = solver.eigenvectors().col(order[at(j)].second);
  }
  // Points in u are at least one for each unit of the largest scale.
  if (r > 0 && !(normal_rule_size(scales[0], digits) * scales[0] < most_work)) return false;
  group.nodes = score_nodes(scales, digits + 1, std::min(kMostNodes, kMostNumbers / (r + 1)));
  for (int j = 0; j < group.nodes.dimensions; ++j) {
    const Eigen::Map<const Vector> zeta(group.nodes.zeta.data() + j * group.nodes.stride,
                                        group.nodes.stride);
    group.reach.push_back(zeta.cwiseAbs().maxCoeff());
  }
  return group.nodes.count > 0;
}

/// A discrete measure as one on a grid that is fine enough to place points in u.
Rule on_grid(const Rule& law) {
  const auto [low, high] = std::minmax_element(law.x.begin(), law.x.end());
  const double cell = std::clamp((*high - *low) / 4096, 0.1, 0.5);
  std::map<std::int64_t, double> cells;
  double total = 0;
  for (std::size_t i = 0; i < law.x.size(); ++i) {
    cells[std::llround(law.x[i] / cell)] += law.w[i];
    total += law.w[i];
  }
  Rule out;
  for (const auto& [number, w] : cells) {
    out.x.push_back(static_cast<double>(number) * cell);
    out.w.push_back(w / total);
  }
  return out;
}

/// The law of log w, w the weight of a token, as a discrete measure on a grid.
Rule law_of_weight(const TokenLaws<double>& laws, const std::vector<double>& b,
                   const std::vector<CovarianceGroup>& groups, const SignalComponents& signal,
                   bool relevant) {
  Rule law;
  for (const CovarianceGroup& group : groups) {
    Array<double> A(at(laws.H) * at(group.basis.cols()));
    score_root(laws, group, A);
    const int r = group.nodes.dimensions;
    for (int k = 0; k < group.count; ++k) {
      const int c = group.first + k;
      if ((c > 0) != relevant) continue;
      // Some thousand nodes show the shape well enough to place points in u. Steps of the golden
      // ratio: no regular ones, which would see one plane of a tensor product only.
      constexpr std::int64_t kEnough = 1 << 14;
      constexpr double kGolden = 0.61803398874989484820;
      const std::int64_t count = std::min(group.nodes.count, kEnough);
      for (std::int64_t k_th = 0; k_th < count; ++k_th) {
        const double turn = kGolden * static_cast<double>(k_th);
        const std::int64_t i =
            count == group.nodes.count
                ? k_th
                : static_cast<std::int64_t>((turn - std::floor(turn)) *
                                            static_cast<double>(group.nodes.count));
        double top = -HUGE_VAL, sum = 0;
        std::vector<double> score(at(laws.H));
        for (int h = 0; h < laws.H; ++h) {
          double x = laws.mean(c, h) + b[at(h)];
          for (int j = 0; j < r; ++j) {
            x += A[at(h * r + j)] * group.nodes.zeta[at(j * group.nodes.stride + i)];
          }
          score[at(h)] = x;
          top = std::max(top, x);
        }
        for (const double x : score) sum += std::exp(x - top);
        const double w = std::abs(group.nodes.weight[at(i)]) * signal.weight[at(c)];
        law.x.push_back(top + std::log(sum));
        law.w.push_back(w);
      }
    }
  }
  return on_grid(law);
}

}  // namespace

std::unique_ptr<LawQuadrature> joint_quadrature(const QuadratureProblem& problem,
                                                const TokenLaws<double>& laws,
                                                const std::vector<double>& blocks, double digits) {
  JointPlan plan;
  const auto first = blocks.begin() + problem.roles.bias;
  std::vector<double> b(first, first + problem.H);
  plan.common = *std::max_element(b.begin(), b.end());
  for (double& x : b) x -= plan.common;
  if (problem.signal->atoms) {
    plan.groups.push_back({0, laws.components, {}, {}, {}});
  } else {
    for (int c = 0; c < laws.components; ++c) plan.groups.push_back({c, 1, {}, {}, {}});
  }
  double nodes = 0;
  for (CovarianceGroup& group : plan.groups) {
    problem.workers->check_go_on();
    if (!plan_group(laws, digits, problem.most_work, group)) return nullptr;
    nodes += static_cast<double>(group.nodes.count) * group.count;
    if (nodes * kFewestPoints > problem.most_work) return nullptr;
  }
  const NodeDensity law(problem.L, law_of_weight(laws, b, plan.groups, *problem.signal, false),
                        law_of_weight(laws, b, plan.groups, *problem.signal, true), -HUGE_VAL);
  const int n = static_cast<int>(std::ceil(1 + digits * (0.62 + law.deviation() / 10)));
  const Rule rule = law.deviation() < 1.1 ? gauss_nodes(law, n, digits)
                                          : trapezoid_nodes(law, digits, kMostPoints);
  const double exponentials = law.high() - law.low() < kLargestLog ? 1.0 : 2.0;
  if (rule.size() == 0 || exponentials * nodes * rule.size() > problem.most_work) return nullptr;
  plan.centre = rule.x[at(rule.size() / 2)];
  for (const double u : rule.x) {
    plan.u.push_back(u - plan.centre);
    plan.scale.push_back(std::exp(u - plan.centre));
    plan.largest_u = std::max(plan.largest_u, std::abs(u - plan.centre));
  }
  plan.weight = rule.w;
  return std::make_unique<JointQuadrature>(problem, std::move(plan));
}

}  // namespace headflow::factorised
