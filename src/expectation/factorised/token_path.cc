#include "expectation/factorised/token_path.h"

#include <Eigen/Cholesky>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"
#include "core/lane_products.h"
#include "expectation/factorised/path_hessian.h"
#include "expectation/factorised/path_kernels.h"
#include "expectation/factorised/weight_laws.h"
#include "expectation/sobol.h"

namespace headflow::factorised {
namespace {

constexpr int kPathChunk = 16;            // groups of 8 nodes whose scores stay in L1
constexpr double kMostPathBytes = 165e6;  // nodes and the numbers t of them
constexpr int kMostLog2 = 24;             // digits of the sequence
constexpr std::size_t kHessianParts = 8;
constexpr double kMostHessian = 4e6;  // numbers of a part: second derivatives, slopes of all cells
constexpr double kLargestScore = 1e7;

/// Components with the same covariance of z.
struct PathGroup {
  int first, count;
  Matrix root;  ///< (I + Sigma_c)^(1/2)
  Matrix turn;  ///< z = turn zeta
};

/// A point, or a direction, or a gradient, as matrices.
struct Plain {
  Matrix m, R;
  Vector b;
};

template <class S, class Part>
Plain plain(const Parameters<S>& x, int bias, const Part& part) {
  Plain out{Matrix(x.H, x.F), Matrix(x.H, x.H), Vector(x.H)};
  for (std::size_t i = 0; i < x.m.size(); ++i) out.m.data()[i] = part(x.m[i]);
  for (std::size_t i = 0; i < x.R.size(); ++i) out.R.data()[i] = part(x.R[i]);
  for (int h = 0; h < x.H; ++h) out.b[h] = part(x.blocks[at(bias + h)]);
  return out;
}

double plain_value(double x) { return x; }
double value_part(const Dual& x) { return x.value; }
double tangent_part(const Dual& x) { return x.tangent; }

/// A_c turn.
Matrix score_matrix(const PathGroup& group, const Plain& x) {
  Matrix A(x.m.rows(), x.m.cols() + x.R.cols());
  A << x.m * group.root, x.R;
  return A * group.turn;
}

/// b + mu_c, one row a component.
Matrix shifts(const SignalComponents& signal, const Plain& x, double common) {
  Matrix out(signal.count(), x.b.size());
  for (int c = 0; c < signal.count(); ++c) {
    out.row(c) = (x.b + x.m * signal.mean[at(c)]).transpose().array() - common;
  }
  return out;
}

class TokenPath final : public Quadrature {
 public:
  TokenPath(const QuadratureProblem& problem, std::shared_ptr<TokenNodes> nodes,
            const Parameters<double>& point, int log2_nodes)
      : problem_(problem),
        nodes_(std::move(nodes)),
        log2_nodes_(log2_nodes),
        groups_of_nodes_((std::int64_t{1} << log2_nodes) / kLanes),
        loss_(problem.L) {
    const Plain here = plain(point, problem.roles.bias, plain_value);
    common_ = here.b.maxCoeff();
    const Matrix white = nodes_->whitening(log2_nodes);
    const SignalComponents& signal = *problem_.signal;
    for (int c = 0; c < signal.count(); c += groups_.back().count) {
      groups_.push_back({c, signal.atoms ? signal.count() : 1, {}, {}});
      PathGroup& group = groups_.back();
      group.root = positive_square_root(signal.second[at(c)]);
      group.turn = Matrix::Identity(nodes_->dimensions(), nodes_->dimensions());
      const Eigen::JacobiSVD<Matrix> svd(score_matrix(group, here), Eigen::ComputeFullV);
      group.turn = svd.matrixV() * white;
    }
    const std::int64_t block = std::max<std::int64_t>(4 * kPathChunk, groups_of_nodes_ / 64);
    for (std::int64_t from = 0; from < groups_of_nodes_; from += block) {
      blocks_.push_back({from, std::min(block, groups_of_nodes_ - from), {}, {}, {}, {}, {}, {}});
    }
    scratch_.resize(at(problem.workers->count()));
  }

  void evaluate(const Parameters<double>& point, bool /*with_defect: it costs nothing*/,
                LossAndGradient<double>& out) override {
    Plain grad;
    run(plain(point, problem_.roles.bias, plain_value), nullptr, grad);
    out.loss = loss_.loss().value;
    out.defect = loss_.defect();
    put(
        grad, point.blocks.size(), [](double x) { return x; }, out);
  }

  /// Of the gradient, the tangents only.
  void evaluate(const Parameters<Dual>& point, LossAndGradient<Dual>& out) override {
    Plain grad;
    const Plain tangent = plain(point, problem_.roles.bias, tangent_part);
    run(plain(point, problem_.roles.bias, value_part), &tangent, grad);
    out.loss = loss_.loss();
    put(
        grad, point.blocks.size(), [](double x) { return Dual(0, x); }, out);
  }

  bool hessian(const Parameters<double>& point, Matrix& out) override {
    Plain grad;
    const Plain value = plain(point, problem_.roles.bias, plain_value);
    run(value, nullptr, grad);
    const double n = problem_.H * (nodes_->dimensions() + 1.0);
    const auto cells = static_cast<double>(law_[0].mass.size() + law_[1].mass.size());
    if (n * (2 * n + cells) > kMostHessian) return false;
    out = in_order(curvature(value), point);
    return true;
  }

  bool has_whole_hessian() const override { return true; }

  std::int64_t nodes() const override {
    return 2 * kLanes * groups_of_nodes_ * problem_.signal->count() * (problem_.H + 8);
  }

 private:
  struct Block {
    std::int64_t from, groups;
    AlignedVector t, t_tangent;               // [component][sign][group]
    std::vector<Histogram> law, law_tangent;  // of each component
    AlignedVector outer, sum;                 // [group of components][H][d], [component][H]
  };
  struct Scratch {
    AlignedVector chi, tangent, g, bar, bar_tangent, one;
  };
  struct Scores {
    std::vector<Matrix> A, tangent;  // of each group of components
    Matrix shift, shift_tangent;
    bool with_tangent;
  };

  template <class S, class Make>
  void put(const Plain& grad, std::size_t blocks, const Make& make, LossAndGradient<S>& out) const {
    out.grad.m.assign(at(grad.m.size()), S(0.0));
    out.grad.R.assign(at(grad.R.size()), S(0.0));
    out.grad.blocks.assign(blocks, S(0.0));
    for (Eigen::Index i = 0; i < grad.m.size(); ++i) out.grad.m[at(i)] = make(grad.m.data()[i]);
    for (Eigen::Index i = 0; i < grad.R.size(); ++i) out.grad.R[at(i)] = make(grad.R.data()[i]);
    for (Eigen::Index h = 0; h < grad.b.size(); ++h) {
      out.grad.blocks[at(problem_.roles.bias + h)] = make(grad.b[h]);
    }
    out.bars.clear();
  }

  template <class Body>
  void for_each_block(const Body& body) {
    problem_.workers->for_each_block(
        blocks_.size(), [&](std::size_t i, int worker) { body(blocks_[i], scratch_[at(worker)]); });
  }

  /// Scores of chunks of a block, for one group of components after the other.
  template <class Body>
  void for_each_chunk(const Block& block, const Scores& scores, Scratch& s, const Body& body) {
    const int H = problem_.H, d = nodes_->dimensions();
    s.chi.resize(at(H * kPathChunk * kLanes));
    if (scores.with_tangent) s.tangent.resize(s.chi.size());
    for (std::int64_t from = 0; from < block.groups; from += kPathChunk) {
      const int count = static_cast<int>(std::min<std::int64_t>(kPathChunk, block.groups - from));
      const float* zeta = zeta_ + (block.from + from) * d * kLanes;
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        lane_scores(scores.A[k].data(), d, H, d, zeta, count, 0, s.chi.data());
        if (scores.with_tangent) {
          lane_scores(scores.tangent[k].data(), d, H, d, zeta, count, 0, s.tangent.data());
        }
        body(k, from, count, zeta);
      }
    }
  }

  PathScores scores_of(const Scores& scores, int component, int sign, int count,
                       const Scratch& s) const {
    return {problem_.H,
            count,
            sign == 0 ? 1.0 : -1.0,
            s.chi.data(),
            scores.with_tangent ? s.tangent.data() : nullptr,
            scores.shift.row(component).data(),
            scores.with_tangent ? scores.shift_tangent.row(component).data() : nullptr};
  }

  static std::size_t place(const Block& block, int component, int sign, std::int64_t group) {
    return at(((2 * component + sign) * block.groups + group) * kLanes);
  }

  void weigh(Block& block, const Scores& scores, Scratch& s) {
    const int C = problem_.signal->count();
    block.t.resize(at(2 * C * block.groups * kLanes));
    if (scores.with_tangent) block.t_tangent.resize(block.t.size());
    for_each_chunk(block, scores, s,
                   [&](std::size_t k, std::int64_t from, int count, const float*) {
                     for (int c = groups_[k].first; c < groups_[k].first + groups_[k].count; ++c) {
                       for (int sign = 0; sign < 2; ++sign) {
                         const std::size_t i = place(block, c, sign, from);
                         path_weights(scores_of(scores, c, sign, count, s), block.t.data() + i,
                                      scores.with_tangent ? block.t_tangent.data() + i : nullptr);
                       }
                     }
                   });
    block.law.resize(at(C));
    block.law_tangent.resize(at(C));
    for (int c = 0; c < C; ++c) {
      const std::size_t i = place(block, c, 0, 0);
      const auto count = static_cast<int>(2 * block.groups);
      const auto [low, high] = std::minmax_element(
          block.t.begin() + static_cast<std::ptrdiff_t>(i),
          block.t.begin() + static_cast<std::ptrdiff_t>(i + at(count) * kLanes));
      check_width((*high - *low) / kCell);
      Histogram& law = block.law[at(c)];
      law.first = static_cast<std::int64_t>(std::floor(*low / kCell)) - 2;
      const std::int64_t last = static_cast<std::int64_t>(std::floor(*high / kCell)) + 5;
      law.mass.assign(at(last - law.first + 1), 0.0);  // with two cells that vectors reach over
      Histogram& moved = block.law_tangent[at(c)];
      if (scores.with_tangent) moved = law;
      path_spread(count, block.t.data() + i,
                  scores.with_tangent ? block.t_tangent.data() + i : nullptr, law.first,
                  law.mass.data(), moved.mass.data());
    }
  }

  void look_back(Block& block, const Scores& scores, Scratch& s) {
    const int H = problem_.H, d = nodes_->dimensions(), C = problem_.signal->count();
    block.outer.assign(groups_.size() * at(H * d * kLanes), 0.0);
    block.sum.assign(at(C * H * kLanes), 0.0);
    s.g.resize(at(H * kPathChunk * kLanes));
    s.bar.resize(at(kPathChunk * kLanes));
    s.bar_tangent.resize(s.bar.size());
    for_each_chunk(
        block, scores, s, [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
          std::fill(s.g.begin(), s.g.end(), 0.0);
          for (int c = groups_[k].first; c < groups_[k].first + groups_[k].count; ++c) {
            const Slopes &slopes = loss_.slopes(c > 0), &moved = loss_.tangent_slopes(c > 0);
            const double scale = problem_.signal->weight[at(c)] * node_weight();
            for (int sign = 0; sign < 2; ++sign) {
              const std::size_t i = place(block, c, sign, from);
              const double* t = block.t.data() + i;
              const double* dt = scores.with_tangent ? block.t_tangent.data() + i : nullptr;
              path_slopes(count, t, dt, slopes.first, slopes.coefficient.data(),
                          dt ? moved.coefficient.data() : nullptr, scale, s.bar.data(),
                          s.bar_tangent.data());
              path_shares(scores_of(scores, c, sign, count, s), t, dt, s.bar.data(),
                          s.bar_tangent.data(), s.g.data(), block.sum.data() + at(c * H * kLanes));
            }
          }
          lane_outer(H, d, d, count, 1, s.g.data(), 0, zeta, 0,
                     block.outer.data() + k * at(H * d * kLanes));
        });
  }

  /// What scores of a component are linear in, as a function of zeta: the rows of m, R and 1; the
  /// last column does not change its sign with zeta.
  Matrix carriers(const PathGroup& group, int component) const {
    const Eigen::Index F = group.root.rows(), d = nodes_->dimensions();
    Matrix out = Matrix::Zero(d + 1, d + 1);
    out.topLeftCorner(F, d) = group.root * group.turn.topRows(F);
    out.block(F, 0, d - F, d) = group.turn.bottomRows(d - F);
    out.col(d).head(F) = problem_.signal->mean[at(component)];
    out(d, d) = 1;
    return out;
  }

  /// After `run` at the same point.
  Matrix curvature(const Plain& value) {
    const int H = problem_.H, d = nodes_->dimensions(), C = problem_.signal->count();
    const Scores scores = scores_at(value, nullptr);
    std::vector<Matrix> carrier(at(C)), linear(at(C));
    for (const PathGroup& group : groups_) {
      for (int c = group.first; c < group.first + group.count; ++c) {
        carrier[at(c)] = carriers(group, c);
        linear[at(c)] = carrier[at(c)].leftCols(d);
      }
    }
    // Some large parts, as each has a matrix for every cell.
    const std::size_t parts = std::min<std::size_t>(kHessianParts, blocks_.size());
    std::vector<std::unique_ptr<PathHessian>> sums(parts);
    problem_.workers->for_each_block(parts, [&](std::size_t part, int worker) {
      Scratch& s = scratch_[at(worker)];
      PathHessian sum(H, d + 1, law_);
      const AlignedVector ones(at(kPathChunk * kLanes), 1.0);
      AlignedVector x, none(at(H * kLanes));
      std::vector<double> still[2];
      for (int token = 0; token < 2; ++token) {
        still[token].assign(loss_.slopes(token).coefficient.size(), 0.0);
      }
      s.g.resize(at(H * kPathChunk * kLanes));
      s.bar.resize(at(kPathChunk * kLanes));
      s.bar_tangent.resize(s.bar.size());
      for (std::size_t b = part; b < blocks_.size(); b += parts) {
        problem_.workers->check_go_on();
        const Block& block = blocks_[b];
        for_each_chunk(
            block, scores, s, [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
              for (int c = groups_[k].first; c < groups_[k].first + groups_[k].count; ++c) {
                const Slopes& slopes = loss_.slopes(c > 0);
                const double weight = problem_.signal->weight[at(c)] * node_weight();
                for (int sign = 0; sign < 2; ++sign) {
                  const double* t = block.t.data() + place(block, c, sign, from);
                  path_slopes(count, t, ones.data(), slopes.first, slopes.coefficient.data(),
                              still[c > 0].data(), weight, s.bar.data(), s.bar_tangent.data());
                  std::fill(s.g.begin(), s.g.end(), 0.0);
                  PathScores here = scores_of(scores, c, sign, count, s);
                  path_shares(here, t, nullptr, ones.data(), nullptr, s.g.data(), none.data());
                  if (sign == 1) {
                    for (double& p : s.g) p = -p;
                  }
                  x.resize(at((d + 1) * count * kLanes));
                  lane_scores(linear[at(c)].data(), d, d + 1, d, zeta, count, 0, x.data());
                  for (int j = 0; j <= d; ++j) {
                    for (int i = 0; i < count * kLanes; ++i) {
                      double& one = x[at(j * count * kLanes + i)];
                      one = here.sign * one + carrier[at(c)](j, d);
                    }
                  }
                  sum.add({count, c > 0, weight, s.g.data(), x.data(), t, s.bar.data(),
                           s.bar_tangent.data()});
                }
              }
            });
      }
      sums[part] = std::make_unique<PathHessian>(std::move(sum));
    });
    for (std::size_t part = 1; part < parts; ++part) sums[0]->add(*sums[part]);
    return sums[0]->finish(loss_);
  }

  /// From [head](row of m, row of R, bias) to m, R, blocks.
  Matrix in_order(const Matrix& by_head, const Parameters<double>& point) const {
    const int H = point.H, F = point.F, numbers = F + H + 1;
    const auto size =
        static_cast<Eigen::Index>(point.m.size() + point.R.size() + point.blocks.size());
    std::vector<Eigen::Index> to;
    for (int h = 0; h < H; ++h) {
      for (int f = 0; f < F; ++f) to.push_back(h * F + f);
      for (int k = 0; k < H; ++k) to.push_back(H * F + h * H + k);
      to.push_back(H * F + H * H + problem_.roles.bias + h);
    }
    Matrix out = Matrix::Zero(size, size);
    for (int i = 0; i < H * numbers; ++i) {
      for (int j = 0; j < H * numbers; ++j) out(to[at(i)], to[at(j)]) = by_head(i, j);
    }
    return out;
  }

  Scores scores_at(const Plain& value, const Plain* tangent) const {
    const SignalComponents& signal = *problem_.signal;
    Scores out{{}, {}, shifts(signal, value, common_), {}, tangent != nullptr};
    for (const PathGroup& group : groups_) out.A.push_back(score_matrix(group, value));
    double largest = out.shift.cwiseAbs().maxCoeff();
    for (const Matrix& A : out.A) largest += 9 * A.cwiseAbs().rowwise().sum().maxCoeff();
    if (!(largest < kLargestScore)) check_width(HUGE_VAL);  // nor are sums of them finite
    if (!tangent) return out;
    out.shift_tangent = shifts(signal, *tangent, 0);
    for (const PathGroup& group : groups_) out.tangent.push_back(score_matrix(group, *tangent));
    return out;
  }

  double node_weight() const { return 0.5 / static_cast<double>(groups_of_nodes_ * kLanes); }

  void run(const Plain& value, const Plain* tangent, Plain& grad) {
    const SignalComponents& signal = *problem_.signal;
    zeta_ = nodes_->first(log2_nodes_);
    const Scores scores = scores_at(value, tangent);
    for_each_block([&](Block& block, Scratch& s) { weigh(block, scores, s); });
    Histogram moved[2];
    law_[0] = law_[1] = {};
    for (const Block& block : blocks_) {
      for (int c = 0; c < signal.count(); ++c) {
        const double weight = signal.weight[at(c)] * node_weight();
        law_[c > 0].add(block.law[at(c)], weight);
        if (tangent) moved[c > 0].add(block.law_tangent[at(c)], weight);
      }
    }
    loss_.evaluate(law_, tangent ? moved : nullptr);
    for_each_block([&](Block& block, Scratch& s) { look_back(block, scores, s); });

    const int H = problem_.H, d = nodes_->dimensions();
    const Eigen::Index F = value.m.cols();
    grad = {Matrix::Zero(H, F), Matrix::Zero(H, H), Vector::Zero(H)};
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      Matrix outer = Matrix::Zero(H, d);
      for (const Block& block : blocks_) {
        for (Eigen::Index i = 0; i < outer.size(); ++i) {
          const double* lane = block.outer.data() + (k * at(outer.size()) + at(i)) * kLanes;
          for (int j = 0; j < kLanes; ++j) outer.data()[i] += lane[j];
        }
      }
      const Matrix bar = outer * groups_[k].turn.transpose();
      grad.m += bar.leftCols(F) * groups_[k].root;
      grad.R += bar.rightCols(H);
    }
    for (int c = 0; c < signal.count(); ++c) {
      Vector mean = Vector::Zero(H);
      for (const Block& block : blocks_) {
        for (int h = 0; h < H; ++h) {
          for (int j = 0; j < kLanes; ++j) mean[h] += block.sum[at((c * H + h) * kLanes + j)];
        }
      }
      grad.b += mean;
      grad.m += mean * signal.mean[at(c)].transpose();
    }
  }

  QuadratureProblem problem_;
  std::shared_ptr<TokenNodes> nodes_;
  int log2_nodes_;
  const float* zeta_ = nullptr;  // as long as nobody asks for more of them
  std::int64_t groups_of_nodes_;
  double common_ = 0;  // of b, which changes nothing
  std::vector<PathGroup> groups_;
  std::vector<Block> blocks_;
  std::vector<Scratch> scratch_;
  Histogram law_[2];
  WeightLoss loss_;
};

}  // namespace

const float* TokenNodes::first(int log2) {
  if (log2 <= have_) return zeta_.data();
  ScrambledSobol sequence(dimensions_, kMostLog2, 1);
  sequence.scramble({1, Purpose::scrambling, 0});
  const std::size_t step = at(dimensions_) * kLanes;
  const std::size_t before = have_ > 0 ? (std::size_t{1} << have_) / kLanes : 0,
                    after = (std::size_t{1} << log2) / kLanes;
  zeta_.resize(after * step);
  AlignedVector group(step);
  for (std::size_t g = before; g < after; ++g) {
    sequence.normals(0, static_cast<std::int64_t>(g), 0, dimensions_, group.data());
    for (std::size_t i = 0; i < step; ++i) zeta_[g * step + i] = static_cast<float>(group[i]);
  }
  have_ = log2;
  return zeta_.data();
}

const Matrix& TokenNodes::whitening(int log2) {
  if (const auto known = whitening_.find(log2); known != whitening_.end()) return known->second;
  const float* zeta = first(log2);
  const std::int64_t groups = (std::int64_t{1} << log2) / kLanes;
  const int d = dimensions_;
  Matrix covariance = Matrix::Zero(d, d);
  for (std::int64_t g = 0; g < groups; ++g) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> x(
        zeta + g * d * kLanes, d, kLanes);
    covariance += (x * x.transpose()).cast<double>();
  }
  covariance /= static_cast<double>(groups * kLanes);
  const Eigen::LLT<Matrix> factor(covariance);
  return whitening_[log2] = factor.matrixL().solve(Matrix::Identity(d, d));
}

int most_path_nodes(const QuadratureProblem& problem, int features) {
  const double bytes = 4.0 * (features + problem.H) + 16.0 * problem.signal->count();
  return std::min(kMostLog2, static_cast<int>(std::log2(kMostPathBytes / bytes)));
}

std::unique_ptr<Quadrature> token_path(const QuadratureProblem& problem,
                                       const std::shared_ptr<TokenNodes>& nodes,
                                       const Parameters<double>& point, int log2_nodes) {
  return std::make_unique<TokenPath>(problem, nodes, point, log2_nodes);
}

}  // namespace headflow::factorised
