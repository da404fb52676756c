#include "expectation/factorised/path_curvature.h"

#include "core/index.h"
#include "core/lane_products.h"
#include "expectation/factorised/path_hessian.h"

namespace headflow::factorised {
namespace {

constexpr std::size_t kHessianParts = 8;
constexpr double kMostHessian = 4e6;  // numbers of a part: second derivatives, slopes of all cells

class PathCurvature {
 public:
  PathCurvature(PathSums& sums, const PathPoint& value) : sums_(sums), value_(value) {
    sums.stay_at(value);
  }

  Matrix along_R() { return over_nodes({})[0]->of_nodes(); }

  bool whole(Eigen::Index blocks, Matrix& out) {
    const bool without_R = value_.R.isZero(0.0);
    std::vector<int> z;
    const int of_z = without_R ? static_cast<int>(value_.m.cols()) : sums_.dimensions();
    for (int i = 0; i < of_z; ++i) z.push_back(i);
    const double n = sums_.problem().H * numbers(z) * static_cast<double>(sums_.groups().size());
    const auto cells =
        static_cast<double>(sums_.laws()[0].mass.size() + sums_.laws()[1].mass.size());
    if (n * (2 * n + cells) > kMostHessian) return false;
    const std::vector<std::unique_ptr<PathHessian>> found = over_nodes(z);
    out = in_order(found, z, blocks);
    if (without_R) add_R_without_R(found, z, out);
    return true;
  }

 private:
  /// What a head's score is linear in: some of z, its row of m where signals have a mean, and 1.
  int numbers(const std::vector<int>& z) const { return static_cast<int>(z.size()) + means() + 1; }
  int means() const {
    for (const Vector& mean : sums_.problem().signal->mean) {
      if (!mean.isZero(0.0)) return static_cast<int>(mean.size());
    }
    return 0;
  }

  /// Second derivatives with respect to these numbers of each head, of each group of components;
  /// after `run` at the same point. Without z: all groups in one.
  std::vector<std::unique_ptr<PathHessian>> over_nodes(const std::vector<int>& z) {
    const int H = sums_.problem().H, n = z.empty() ? 1 : numbers(z);
    const PathSums::Scores scores = sums_.scores_at(value_, nullptr);
    std::vector<Matrix> linear;
    for (const PathGroup& group : sums_.groups()) linear.push_back(group.turn(z, Eigen::all));
    // Some large parts, as each has a matrix for every cell.
    const std::size_t parts = std::min<std::size_t>(kHessianParts, sums_.blocks().size());
    const std::size_t sums_of_part = z.empty() ? 1 : sums_.groups().size();
    std::vector<std::vector<std::unique_ptr<PathHessian>>> out(parts);
    sums_.problem().workers->for_each_block(parts, [&](std::size_t part, int worker) {
      PathSums::Scratch& s = sums_.scratch(worker);
      for (std::size_t k = 0; k < sums_of_part; ++k) {
        out[part].push_back(std::make_unique<PathHessian>(H, n, sums_.laws()));
      }
      const AlignedVector ones(at(kPathChunk * kLanes), 1.0);
      AlignedVector x(at(n * kPathChunk * kLanes)), none(at(H * kLanes));
      std::vector<double> still[2];
      for (int token = 0; token < 2; ++token) {
        still[token].assign(sums_.loss().slopes(token).coefficient.size(), 0.0);
      }
      s.g.resize(at(H * kPathChunk * kLanes));
      s.bar.resize(at(kPathChunk * kLanes));
      s.bar_tangent.resize(s.bar.size());
      for (std::size_t b = part; b < sums_.blocks().size(); b += parts) {
        sums_.problem().workers->check_go_on();
        PathSums::Block& block = sums_.blocks()[b];
        sums_.for_each_chunk(
            block, scores, s, true,
            [&](std::size_t k, std::int64_t from, int count, const float* zeta) {
              PathHessian& sum = *out[part][z.empty() ? 0 : k];
              for (int c = sums_.groups()[k].first;
                   c < sums_.groups()[k].first + sums_.groups()[k].count; ++c) {
                const Slopes& slopes = sums_.loss().slopes(c > 0);
                const double weight = sums_.problem().signal->weight[at(c)] * sums_.node_weight();
                for (int sign = 0; sign < 2; ++sign) {
                  const double* t = block.t.data() + PathSums::place(block, c, sign, from);
                  path_slopes(count, t, ones.data(), slopes.first, slopes.coefficient.data(),
                              still[c > 0].data(), weight, s.bar.data(), s.bar_tangent.data());
                  std::fill(s.g.begin(), s.g.end(), 0.0);
                  PathScores here = sums_.scores_of(scores, c, sign, count, s);
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
      for (std::size_t k = 0; k < sums_of_part; ++k) out[0][k]->add(*out[part][k]);
    }
    return std::move(out[0]);
  }

  /// z (linear zeta), means of a component and 1, [numbers][groups].
  void write_numbers(int component, const Matrix& linear, double sign, int count, const float* zeta,
                     double* x) const {
    const auto z = static_cast<int>(linear.rows()), d = sums_.dimensions();
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(count) * kLanes;
    if (z > 0) {
      lane_scores(linear.data(), d, z, d, zeta, count, 0, x);
      for (std::ptrdiff_t i = 0; i < z * row; ++i) x[i] *= sign;
      const Vector& mean = sums_.problem().signal->mean[at(component)];
      for (int f = 0; f < means(); ++f) std::fill_n(x + (z + f) * row, row, mean[f]);
      x += (z + means()) * row;
    }
    std::fill_n(x, row, 1.0);
  }

  /// How the numbers of all heads and groups move with m, R and blocks: columns.
  Matrix slopes_of_numbers(const std::vector<int>& z, Eigen::Index size) const {
    const Eigen::Index H = value_.m.rows(), F = value_.m.cols(), n = numbers(z);
    Matrix out = Matrix::Zero(static_cast<Eigen::Index>(sums_.groups().size()) * H * n, size);
    PathPoint unit = PathPoint::zero(H, F);
    const auto column = [&](Eigen::Index j, double& number) {
      number = 1;
      for (std::size_t k = 0; k < sums_.groups().size(); ++k) {
        const Matrix moved = sums_.groups()[k].gauge.tangent(
            sums_.turned(k), score_matrix(sums_.groups()[k].root, unit));
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
    for (Eigen::Index h = 0; h < H; ++h)
      column(H * (F + H) + sums_.problem().roles.bias + h, unit.b[h]);
    return out;
  }

  /// From these numbers to m, R, blocks: J^T M J, and what the curvature of the gauge does.
  Matrix in_order(const std::vector<std::unique_ptr<PathHessian>>& found, const std::vector<int>& z,
                  Eigen::Index blocks) const {
    const Eigen::Index H = value_.m.rows(), F = value_.m.cols(), size = H * (F + H) + blocks;
    const Matrix J = slopes_of_numbers(z, size);
    Matrix out = J.transpose() * PathHessian::finish(found, sums_.loss()) * J;
    PathPoint unit = PathPoint::zero(H, F);
    const auto column = [&](Eigen::Index j, double& number) {
      number = 1;
      PathPoint grad = PathPoint::zero(H, F);
      for (std::size_t k = 0; k < sums_.groups().size(); ++k) {
        add_scores(
            sums_.groups()[k].root,
            sums_.groups()[k].gauge.pull_back_slope(sums_.turned(k), sums_.bars()[k],
                                                    score_matrix(sums_.groups()[k].root, unit)),
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
  void add_R_without_R(const std::vector<std::unique_ptr<PathHessian>>& found,
                       const std::vector<int>& z, Matrix& out) const {
    const Eigen::Index H = sums_.problem().H, n = numbers(z),
                       R = H * (static_cast<Eigen::Index>(sums_.dimensions()) - H);
    Matrix price = Matrix::Zero(H, H);
    for (const auto& sum : found) {
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

  PathSums& sums_;
  const PathPoint& value_;
};

}  // namespace

Matrix path_curvature_along_R(PathSums& sums, const PathPoint& value) {
  return PathCurvature(sums, value).along_R();
}

bool path_curvature(PathSums& sums, const PathPoint& value, std::size_t blocks, Matrix& out) {
  return PathCurvature(sums, value).whole(static_cast<Eigen::Index>(blocks), out);
}

}  // namespace headflow::factorised
