#include "expectation/factorised/token_path.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"
#include "core/lane_products.h"
#include "expectation/factorised/path_gauge.h"
#include "expectation/factorised/path_hessian.h"
#include "expectation/factorised/path_kernels.h"
#include "expectation/factorised/weight_laws.h"

namespace headflow::factorised {
namespace {

constexpr double kMostPathBytes = 165e6;  // nodes and the numbers t of them
constexpr double kMostKept = 16e6;        // bytes of exponentials that are not computed twice
constexpr std::size_t kHessianParts = 8;
constexpr double kMostHessian = 4e6;  // numbers of a part: second derivatives, slopes of all cells
constexpr double kLargestScore = 1e7;
constexpr double kModerate = 300;  // |chi| and |shift|: products of their exponentials are finite

/// Components with the same covariance of z.
struct PathGroup {
  int first, count;
  Matrix root;      ///< (I + Sigma_c)^(1/2)
  Matrix turn;      ///< z = turn zeta
  PathGauge gauge;  ///< around A_c where the nodes were placed
};

/// A point, or a direction, or a gradient, as matrices.
struct Plain {
  Matrix m, R;
  Vector b;

  bool operator==(const Plain& other) const {
    return m.size() == other.m.size() && m == other.m && R == other.R && b == other.b;
  }
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

/// A_c.
Matrix score_matrix(const Matrix& root, const Plain& x) {
  Matrix A(x.m.rows(), x.m.cols() + x.R.cols());
  A << x.m * root, x.R;
  return A;
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
        loss_(problem.L),
        blocks_size_(static_cast<Eigen::Index>(point.blocks.size())) {
    const Plain here = plain(point, problem.roles.bias, plain_value);
    common_ = here.b.maxCoeff();
    const Matrix white = nodes_->whitening(log2_nodes);
    const SignalComponents& signal = *problem_.signal;
    for (int c = 0; c < signal.count(); c += groups_.back().count) {
      const Matrix root = positive_square_root(signal.second[at(c)]);
      const Matrix A = score_matrix(root, here);
      const Eigen::JacobiSVD<Matrix> svd(A, Eigen::ComputeFullV);
      groups_.push_back(
          {c, signal.atoms ? signal.count() : 1, root, svd.matrixV() * white, PathGauge(A)});
    }
    const std::int64_t block = std::max<std::int64_t>(4 * kPathChunk, groups_of_nodes_ / 64);
    for (std::int64_t from = 0; from < groups_of_nodes_; from += block) {
      blocks_.push_back(
          {from, std::min(block, groups_of_nodes_ - from), {}, {}, {}, {}, {}, {}, {}});
    }
    scratch_.resize(at(problem.workers->count()));
    keep_ =
        16.0 * problem.H * static_cast<double>(groups_.size() * at(groups_of_nodes_ * kLanes)) <=
        kMostKept;
  }

  void evaluate(const Parameters<double>& point, bool /*with_defect: it costs nothing*/,
                LossAndGradient<double>& out) override {
    Plain grad;
    const Plain value = plain(point, problem_.roles.bias, plain_value);
    run(value, nullptr);
    pull_back(value, grad);
    out.loss = loss_.loss().value;
    out.defect = loss_.defect();
    put(
        grad, point.blocks.size(), [](double x) { return x; }, out);
  }

  /// Of the gradient, the tangents only.
  void evaluate(const Parameters<Dual>& point, LossAndGradient<Dual>& out) override {
    const Plain value = plain(point, problem_.roles.bias, value_part);
    Plain tangent = plain(point, problem_.roles.bias, tangent_part), grad;
    const bool without_R = value.R.isZero(0.0);
    const Matrix R = tangent.R;
    if (without_R) tangent.R.setZero();
    if (!(value == bars_at_)) run(value, nullptr);
    const std::vector<Matrix> bars = bars_;
    std::unique_ptr<PathHessian> along_R;
    if (without_R && !R.isZero(0.0)) along_R = std::move(curvature(value, {})[0]);
    run(value, &tangent);
    out.loss = loss_.loss();
    pull_back(value, grad);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      const Matrix slope = groups_[k].gauge.pull_back_slope(turned_[k], bars[k],
                                                            score_matrix(groups_[k].root, tangent));
      add_scores(groups_[k], slope, grad);
    }
    if (without_R) grad.R.setZero();
    if (along_R) grad.R = along_R->of_nodes() * R;
    put(
        grad, point.blocks.size(), [](double x) { return Dual(0, x); }, out);
  }

  bool hessian(const Parameters<double>& point, Matrix& out) override {
    const Plain value = plain(point, problem_.roles.bias, plain_value);
    if (!(value == bars_at_)) run(value, nullptr);
    const bool without_R = value.R.isZero(0.0);
    std::vector<int> z;
    for (int i = 0; i < (without_R ? point.F : nodes_->dimensions()); ++i) z.push_back(i);
    const double n = problem_.H * numbers(z) * static_cast<double>(groups_.size());
    const auto cells = static_cast<double>(law_[0].mass.size() + law_[1].mass.size());
    if (n * (2 * n + cells) > kMostHessian) return false;
    const std::vector<std::unique_ptr<PathHessian>> sums = curvature(value, z);
    out = in_order(sums, z, value);
    if (without_R) add_R_without_R(sums, z, out);
    return true;
  }

  WholeHessian whole_hessian() const override { return WholeHessian::exact; }
  bool quasi_random() const override { return true; }

  /// The gauge must not be far from where the point is: turns are then ambiguous.
  void recentre(const Parameters<double>& point) override {
    const Plain value = plain(point, problem_.roles.bias, plain_value);
    for (PathGroup& group : groups_) group.gauge.recentre(score_matrix(group.root, value));
    bars_at_ = {};
  }

  std::int64_t nodes() const override {
    return 2 * kLanes * groups_of_nodes_ * problem_.signal->count() * (problem_.H + 8);
  }

 private:
  struct Block {
    std::int64_t from, groups;
    AlignedVector powers;                     // what for_each_chunk keeps
    AlignedVector t, t_tangent;               // [component][sign][group]
    std::vector<Histogram> law, law_tangent;  // of each component
    AlignedVector outer, sum;                 // [group of components][H][d], [component][H]
  };
  struct Scratch {
    AlignedVector chi, tangent, powers, g, bar, bar_tangent, mass, mass_tangent;
    double *rise, *fall;  // e^chi and e^-chi, in `powers` or where they are kept
  };
  struct Scores {
    std::vector<Matrix> A, tangent;       // of each group of components
    Matrix shift, shift_tangent, factor;  // factor: e^shift
    bool with_tangent;
    bool moderate;  // exponentials of scores may be taken as they are
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

  /// Scores of chunks of a block, for one group of components after the other. `again`: at the
  /// point where it was last done, so that exponentials that were kept serve once more.
  template <class Body>
  void for_each_chunk(Block& block, const Scores& scores, Scratch& s, bool again,
                      const Body& body) {
    const int H = problem_.H, d = nodes_->dimensions();
    const bool keep = keep_ && scores.moderate, recall = keep && again;
    s.chi.resize(at(H * kPathChunk * kLanes));
    if (keep) {
      block.powers.resize(2 * groups_.size() * at(block.groups * H * kLanes));
    } else {
      s.powers.resize(2 * s.chi.size());
    }
    if (scores.with_tangent) s.tangent.resize(s.chi.size());
    for (std::int64_t from = 0; from < block.groups; from += kPathChunk) {
      const int count = static_cast<int>(std::min<std::int64_t>(kPathChunk, block.groups - from));
      const float* zeta = zeta_ + (block.from + from) * d * kLanes;
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        s.rise = s.powers.data();
        if (keep) {
          const std::int64_t before = static_cast<std::int64_t>(k) * block.groups + from;
          s.rise = block.powers.data() + 2 * before * H * kLanes;
        }
        s.fall = s.rise + static_cast<std::ptrdiff_t>(H) * count * kLanes;
        if (!recall) {
          lane_scores(scores.A[k].data(), d, H, d, zeta, count, 0, s.chi.data());
          if (scores.moderate) path_powers(H * count, s.chi.data(), s.rise, s.fall);
        }
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
            !scores.moderate ? nullptr : (sign == 0 ? s.rise : s.fall),
            scores.shift.row(component).data(),
            scores.with_tangent ? scores.shift_tangent.row(component).data() : nullptr,
            scores.factor.row(component).data()};
  }

  static std::size_t place(const Block& block, int component, int sign, std::int64_t group) {
    return at(((2 * component + sign) * block.groups + group) * kLanes);
  }

  void weigh(Block& block, const Scores& scores, Scratch& s) {
    const int C = problem_.signal->count();
    block.t.resize(at(2 * C * block.groups * kLanes));
    if (scores.with_tangent) block.t_tangent.resize(block.t.size());
    for_each_chunk(block, scores, s, false,
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
      const Eigen::Map<const Vector> t(block.t.data() + i, count * kLanes);
      const double low = t.minCoeff(), high = t.maxCoeff();
      check_width((high - low) / kCell);
      Histogram& law = block.law[at(c)];
      law.first = static_cast<std::int64_t>(std::floor(low / kCell)) - 2;
      const std::int64_t last = static_cast<std::int64_t>(std::floor(high / kCell)) + 5;
      const auto cells = last - law.first + 1;  // with two that vectors reach over
      s.mass.assign(at(kPathCopies * cells), 0.0);
      if (scores.with_tangent) s.mass_tangent = s.mass;
      path_spread(count, t.data(), scores.with_tangent ? block.t_tangent.data() + i : nullptr,
                  law.first, cells, s.mass.data(), s.mass_tangent.data());
      add_copies(s.mass, cells, law.mass);
      if (!scores.with_tangent) continue;
      block.law_tangent[at(c)].first = law.first;
      add_copies(s.mass_tangent, cells, block.law_tangent[at(c)].mass);
    }
  }

  static void add_copies(const AlignedVector& copies, std::int64_t cells, auto& sum) {
    sum.assign(at(cells), 0.0);
    for (int k = 0; k < kPathCopies; ++k) {
      for (std::int64_t j = 0; j < cells; ++j) sum[at(j)] += copies[at(k * cells + j)];
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
        block, scores, s, true,
        [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
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

  /// What a head's score is linear in: some of z, its row of m where signals have a mean, and 1.
  int numbers(const std::vector<int>& z) const { return static_cast<int>(z.size()) + means() + 1; }
  int means() const {
    for (const Vector& mean : problem_.signal->mean) {
      if (!mean.isZero(0.0)) return static_cast<int>(mean.size());
    }
    return 0;
  }

  /// Second derivatives with respect to these numbers of each head, of each group of components;
  /// after `run` at the same point. Without z: all groups in one.
  std::vector<std::unique_ptr<PathHessian>> curvature(const Plain& value,
                                                      const std::vector<int>& z) {
    const int H = problem_.H, n = z.empty() ? 1 : numbers(z);
    zeta_ = nodes_->first(log2_nodes_);
    const Scores scores = scores_at(value, nullptr);
    std::vector<Matrix> linear;
    for (const PathGroup& group : groups_) linear.push_back(group.turn(z, Eigen::all));
    // Some large parts, as each has a matrix for every cell.
    const std::size_t parts = std::min<std::size_t>(kHessianParts, blocks_.size());
    const std::size_t sums_of_part = z.empty() ? 1 : groups_.size();
    std::vector<std::vector<std::unique_ptr<PathHessian>>> sums(parts);
    problem_.workers->for_each_block(parts, [&](std::size_t part, int worker) {
      Scratch& s = scratch_[at(worker)];
      for (std::size_t k = 0; k < sums_of_part; ++k) {
        sums[part].push_back(std::make_unique<PathHessian>(H, n, law_));
      }
      const AlignedVector ones(at(kPathChunk * kLanes), 1.0);
      AlignedVector x(at(n * kPathChunk * kLanes)), none(at(H * kLanes));
      std::vector<double> still[2];
      for (int token = 0; token < 2; ++token) {
        still[token].assign(loss_.slopes(token).coefficient.size(), 0.0);
      }
      s.g.resize(at(H * kPathChunk * kLanes));
      s.bar.resize(at(kPathChunk * kLanes));
      s.bar_tangent.resize(s.bar.size());
      for (std::size_t b = part; b < blocks_.size(); b += parts) {
        problem_.workers->check_go_on();
        Block& block = blocks_[b];
        for_each_chunk(
            block, scores, s, true,
            [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
              PathHessian& sum = *sums[part][z.empty() ? 0 : k];
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
                  write_numbers(c, linear[k], here.sign, count, zeta, x.data());
                  sum.add({count, c > 0, weight, s.g.data(), x.data(), t, s.bar.data(),
                           s.bar_tangent.data()});
                }
              }
            });
      }
    });
    for (std::size_t part = 1; part < parts; ++part) {
      for (std::size_t k = 0; k < sums_of_part; ++k) sums[0][k]->add(*sums[part][k]);
    }
    return std::move(sums[0]);
  }

  /// z (linear zeta), means of a component and 1, [numbers][groups].
  void write_numbers(int component, const Matrix& linear, double sign, int count, const float* zeta,
                     double* x) const {
    const auto z = static_cast<int>(linear.rows()), d = nodes_->dimensions();
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(count) * kLanes;
    if (z > 0) {
      lane_scores(linear.data(), d, z, d, zeta, count, 0, x);
      for (std::ptrdiff_t i = 0; i < z * row; ++i) x[i] *= sign;
      const Vector& mean = problem_.signal->mean[at(component)];
      for (int f = 0; f < means(); ++f) std::fill_n(x + (z + f) * row, row, mean[f]);
      x += (z + means()) * row;
    }
    std::fill_n(x, row, 1.0);
  }

  /// How the numbers of all heads and groups move with m, R and blocks: columns.
  Matrix slopes_of_numbers(const std::vector<int>& z, const Plain& value, Eigen::Index size) const {
    const Eigen::Index H = value.m.rows(), F = value.m.cols(), n = numbers(z);
    Matrix out = Matrix::Zero(static_cast<Eigen::Index>(groups_.size()) * H * n, size);
    Plain unit{Matrix::Zero(H, F), Matrix::Zero(H, H), Vector::Zero(H)};
    const auto column = [&](Eigen::Index j, double& number) {
      number = 1;
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        const Matrix moved =
            groups_[k].gauge.tangent(turned_[k], score_matrix(groups_[k].root, unit));
        for (Eigen::Index h = 0; h < H; ++h) {
          Eigen::Index row = (static_cast<Eigen::Index>(k) * H + h) * n;
          for (const int i : z) out(row++, j) = moved(h, i);
          for (int f = 0; f < means(); ++f) out(row++, j) = unit.m(h, f);
          out(row, j) = unit.b[h];
        }
      }
      number = 0;
    };
    for (Eigen::Index i = 0; i < H * F; ++i) column(i, unit.m.data()[i]);
    if (at(z.size()) > at(F)) {
      for (Eigen::Index i = 0; i < H * H; ++i) column(H * F + i, unit.R.data()[i]);
    }
    for (Eigen::Index h = 0; h < H; ++h) column(H * (F + H) + problem_.roles.bias + h, unit.b[h]);
    return out;
  }

  /// From these numbers to m, R, blocks: J^T M J, and what the curvature of the gauge does.
  Matrix in_order(const std::vector<std::unique_ptr<PathHessian>>& sums, const std::vector<int>& z,
                  const Plain& value) const {
    const Eigen::Index H = value.m.rows(), F = value.m.cols(), size = H * (F + H) + blocks_size_;
    const Matrix J = slopes_of_numbers(z, value, size);
    Matrix out = J.transpose() * PathHessian::finish(sums, loss_) * J;
    Plain unit{Matrix::Zero(H, F), Matrix::Zero(H, H), Vector::Zero(H)};
    const auto column = [&](Eigen::Index j, double& number) {
      number = 1;
      Plain grad{Matrix::Zero(H, F), Matrix::Zero(H, H), Vector::Zero(H)};
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        add_scores(groups_[k],
                   groups_[k].gauge.pull_back_slope(turned_[k], bars_[k],
                                                    score_matrix(groups_[k].root, unit)),
                   grad);
      }
      number = 0;
      out.col(j).head(H * F) += grad.m.reshaped<Eigen::RowMajor>();
      if (at(z.size()) > at(F))
        out.col(j).segment(H * F, H * H) += grad.R.reshaped<Eigen::RowMajor>();
    };
    for (Eigen::Index i = 0; i < H * F; ++i) column(i, unit.m.data()[i]);
    if (at(z.size()) > at(F)) {
      for (Eigen::Index i = 0; i < H * H; ++i) column(H * F + i, unit.R.data()[i]);
    }
    return 0.5 * (out + out.transpose());
  }

  /// At R = 0: along R what two biases have in common at a node, for every column.
  void add_R_without_R(const std::vector<std::unique_ptr<PathHessian>>& sums,
                       const std::vector<int>& z, Matrix& out) const {
    const Eigen::Index H = problem_.H, n = numbers(z),
                       R = H * (static_cast<Eigen::Index>(nodes_->dimensions()) - H);
    Matrix price = Matrix::Zero(H, H);
    for (const auto& sum : sums) {
      const Matrix by_node = sum->of_nodes();
      for (Eigen::Index h = 0; h < H; ++h) {
        for (Eigen::Index j = 0; j < H; ++j) price(h, j) += by_node(h * n + n - 1, j * n + n - 1);
      }
    }
    for (Eigen::Index h = 0; h < H; ++h) {
      for (Eigen::Index j = 0; j < H; ++j) {
        for (Eigen::Index k = 0; k < H; ++k) out(R + h * H + k, R + j * H + k) = price(h, j);
      }
    }
  }

  Scores scores_at(const Plain& value, const Plain* tangent) {
    const SignalComponents& signal = *problem_.signal;
    Scores out{{}, {}, shifts(signal, value, common_), {}, {}, tangent != nullptr, true};
    const double shift = out.shift.cwiseAbs().maxCoeff();
    double chi = 0;
    for (const PathGroup& group : groups_) {
      const Matrix A = score_matrix(group.root, value);
      chi = std::max(chi, nodes_->largest() * A.rowwise().norm().maxCoeff());
      if (!(chi + shift < kLargestScore)) check_width(HUGE_VAL);  // nor are sums of them finite
      const std::size_t k = out.A.size();
      turned_.resize(groups_.size());
      turned_[k] = group.gauge.turn(A);
      out.A.emplace_back(turned_[k].scores * group.turn);
      if (tangent) {
        out.tangent.emplace_back(
            group.gauge.tangent(turned_[k], score_matrix(group.root, *tangent)) * group.turn);
      }
    }
    out.moderate = chi < kModerate && shift < kModerate;
    out.factor = out.shift.array().exp();
    if (tangent) out.shift_tangent = shifts(signal, *tangent, 0);
    return out;
  }

  double node_weight() const { return 0.5 / static_cast<double>(groups_of_nodes_ * kLanes); }

  /// The loss, and its derivatives with respect to scores and shifts, or tangents of these.
  void run(const Plain& value, const Plain* tangent) {
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
    collect();
    bars_at_ = tangent ? Plain{} : value;
  }

  /// Sums over blocks.
  void collect() {
    const int H = problem_.H, d = nodes_->dimensions(), C = problem_.signal->count();
    bars_.clear();
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      Matrix outer = Matrix::Zero(H, d);
      for (const Block& block : blocks_) {
        for (Eigen::Index i = 0; i < outer.size(); ++i) {
          const double* lane = block.outer.data() + (k * at(outer.size()) + at(i)) * kLanes;
          for (int j = 0; j < kLanes; ++j) outer.data()[i] += lane[j];
        }
      }
      bars_.emplace_back(outer * groups_[k].turn.transpose());
    }
    shift_bars_ = Matrix::Zero(C, H);
    for (const Block& block : blocks_) {
      for (int i = 0; i < C * H; ++i) {
        for (int j = 0; j < kLanes; ++j) shift_bars_.data()[i] += block.sum[at(i * kLanes + j)];
      }
    }
  }

  /// A derivative with respect to A_c, as one with respect to m and R.
  static void add_scores(const PathGroup& group, const Matrix& bar, Plain& grad) {
    const Eigen::Index F = group.root.rows();
    grad.m += bar.leftCols(F) * group.root;
    grad.R += bar.rightCols(bar.cols() - F);
  }

  /// The gradient, or its tangent but for the curvature of the gauge.
  void pull_back(const Plain& value, Plain& grad) const {
    const Eigen::Index H = value.m.rows();
    grad = {Matrix::Zero(H, value.m.cols()), Matrix::Zero(H, H), Vector::Zero(H)};
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      add_scores(groups_[k], groups_[k].gauge.pull_back(turned_[k], bars_[k]), grad);
    }
    if (value.R.isZero(0.0)) grad.R.setZero();
    for (int c = 0; c < problem_.signal->count(); ++c) {
      const Vector mean = shift_bars_.row(c).transpose();
      grad.b += mean;
      grad.m += mean * problem_.signal->mean[at(c)].transpose();
    }
  }

  QuadratureProblem problem_;
  std::shared_ptr<TokenNodes> nodes_;
  int log2_nodes_;
  const float* zeta_ = nullptr;  // as long as nobody asks for more of them
  std::int64_t groups_of_nodes_;
  bool keep_;          // exponentials, from one pass over the nodes to the next
  double common_ = 0;  // of b, which changes nothing
  std::vector<PathGroup> groups_;
  std::vector<Block> blocks_;
  std::vector<Scratch> scratch_;
  Histogram law_[2];
  WeightLoss loss_;
  std::vector<PathGauge::Turned> turned_;  // of each group, at the last point
  std::vector<Matrix> bars_;               // dE/d(A O), and dE/dshift of each component
  Matrix shift_bars_;
  Plain bars_at_;  // where; empty after tangents
  Eigen::Index blocks_size_;
};

}  // namespace

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
