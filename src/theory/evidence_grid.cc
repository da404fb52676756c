// The evidence of any components, by the trapezoid rule on a tensor grid in their span.
//
// At a node chi the density of an irrelevant token is phi = N(chi; 0, I), that of a relevant one
// phi w = sum_k p_k N(chi; a_k, I + Sigma_k). The rule converges exponentially. A shift by i y
// along one axis multiplies phi by at most e^{y^2/2} and leaves |exp(-e^u w)| <= 1 as long as the
// slope of log w along it times y is below pi/2, so that the error is e^{y^2/2 - 2 pi y / step}.
// Steps, box and cost come from a coarse probe of the slopes. Corners where both densities are
// negligible are never visited: the quadratic forms are sums of squares, one an axis (Cholesky),
// and a partial sum that is too large cuts the branch.

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/workers.h"
#include "theory/evidence.h"
#include "theory/log_histogram.h"

namespace headflow {
namespace {

struct Gaussian {
  double log_weight;  ///< log p - log det(I + Sigma)/2
  Vector mean;
  Matrix whitener;  ///< M with M^T M = (I + Sigma)^-1, lower triangular
};

struct Axis {
  double low = 0, step = 1;
  std::int64_t count = 1;
  double at(std::int64_t i) const { return low + step * static_cast<double>(i); }
};

class GridEvidence final : public Evidence {
 public:
  GridEvidence(const EvidenceBlock& block, const EvidenceRange& range)
      : rank_(static_cast<int>(block.components.front().mean.size())),
        range_(range),
        largest_log_(-range.smallest_u() + std::log(range.digits) + 1.0),
        histogram_(largest_log_) {
    const Matrix unit = Matrix::Identity(rank_, rank_);
    for (const MixtureComponent& component : block.components) {
      const Eigen::LLT<Matrix> cholesky(unit + component.factor * component.factor.transpose());
      const Matrix root = cholesky.matrixL();
      components_.push_back({std::log(component.weight) - root.diagonal().array().log().sum(),
                             component.mean, root.triangularView<Eigen::Lower>().solve(unit)});
    }
    probe();
  }

  /// Evaluations of a component that `fill` will take, about.
  double work() const { return expected_nodes_ * static_cast<double>(components_.size()); }

  void fill(const Workers& workers) {
    // Slabs along the first axis, whatever the threads, added in order.
    const double wanted = std::clamp(expected_nodes_ / 20000.0, 1.0, 64.0);
    const auto slabs =
        static_cast<std::size_t>(std::min(static_cast<std::int64_t>(wanted), axes_[0].count));
    std::vector<LogHistogram> parts(slabs, LogHistogram(largest_log_));
    std::vector<std::int64_t> counts(slabs, 0);
    workers.for_each_block(slabs, [&](std::size_t slab, int) {
      Walk walk(*this, parts[slab], workers);
      const auto number = static_cast<std::int64_t>(slab), of = static_cast<std::int64_t>(slabs);
      walk.visit(0, axes_[0].count * number / of, axes_[0].count * (number + 1) / of);
      counts[slab] = walk.nodes;
    });
    for (std::size_t slab = 0; slab < slabs; ++slab) {
      histogram_.add(parts[slab]);
      nodes_ += counts[slab];
    }
    histogram_.finish();
  }

  EvidenceValues at(double u) const override { return histogram_.at(u); }
  std::int64_t nodes() const override { return nodes_; }

 private:
  double cut() const { return range_.digits + 2.0; }
  /// Beyond this distance from 0 either phi w is negligible or w is so large that exp(-e^u w) is.
  double farthest() const { return std::sqrt(2.0 * (cut() + largest_log_)); }

  /// A walk over the grid, axis by axis, with what is known of chi so far.
  struct Walk {
    Walk(const GridEvidence& evidence, LogHistogram& histogram, const Workers& workers)
        : grid(evidence),
          out(histogram),
          stop(workers),
          chi(evidence.rank_),
          forms(static_cast<std::size_t>(evidence.rank_ + 1) * evidence.components_.size()),
          norms(static_cast<std::size_t>(evidence.rank_ + 1)),
          offsets(static_cast<std::size_t>(evidence.rank_) * evidence.components_.size()) {
      cell = std::pow(2.0 * std::numbers::pi, -0.5 * grid.rank_);
      for (const Axis& axis : grid.axes_) cell *= axis.step;
      farthest = grid.farthest();
    }

    void visit(int axis, std::int64_t begin, std::int64_t end) {
      const std::size_t K = grid.components_.size(), d = static_cast<std::size_t>(axis);
      const double* before = &forms[d * K];
      double* after = &forms[(d + 1) * K];
      double* offset = &offsets[d * K];
      for (std::size_t k = 0; k < K; ++k) {
        const Gaussian& component = grid.components_[k];
        offset[k] = -component.whitener(axis, axis) * component.mean[axis];
        for (int i = 0; i < axis; ++i) {
          offset[k] += component.whitener(axis, i) * (chi[i] - component.mean[i]);
        }
      }
      for (std::int64_t i = begin; i < end; ++i) {
        const double x = chi[axis] = grid.axes_[d].at(i);
        norms[d + 1] = norms[d] + x * x;
        double least = 0.5 * norms[d + 1];
        for (std::size_t k = 0; k < K; ++k) {
          const double residual = offset[k] + grid.components_[k].whitener(axis, axis) * x;
          after[k] = before[k] + residual * residual;
          least = std::min(least, 0.5 * after[k]);
        }
        if (least > grid.cut() || norms[d + 1] > farthest * farthest) continue;
        if (axis + 1 < grid.rank_) {
          stop.check_go_on();
          visit(axis + 1, 0, grid.axes_[d + 1].count);
        } else {
          leaf(after);
        }
      }
    }

    void leaf(const double* form) {
      const double log_phi = -0.5 * norms.back();
      const double s = grid.log_sum(form) - log_phi;
      if (s > grid.largest_log_) return;
      ++nodes;
      out.add(s, cell * std::exp(log_phi + s), cell * std::exp(log_phi));
    }

    const GridEvidence& grid;
    LogHistogram& out;
    const Workers& stop;
    Vector chi;
    std::vector<double> forms, norms, offsets;
    double cell, farthest;
    std::int64_t nodes = 0;
  };

  /// log sum_k exp(log_weight_k - form_k / 2), log of the relevant density but for (2 pi)^{-r/2}.
  double log_sum(const double* form) const {
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < components_.size(); ++k) {
      most = std::max(most, components_[k].log_weight - 0.5 * form[k]);
    }
    double sum = 0;
    for (std::size_t k = 0; k < components_.size(); ++k) {
      sum += std::exp(components_[k].log_weight - 0.5 * form[k] - most);
    }
    return most + std::log(sum);
  }

  void probe() {
    const double radius = std::sqrt(2.0 * cut());
    Vector low = Vector::Constant(rank_, -radius), high = -low;
    for (const Gaussian& component : components_) {
      const Matrix inverse = component.whitener.triangularView<Eigen::Lower>().solve(
          Matrix(Matrix::Identity(rank_, rank_)));
      const Vector reach = inverse.rowwise().norm() * radius;  // root of diag(I + Sigma)
      low = low.cwiseMin(component.mean - reach);
      high = high.cwiseMax(component.mean + reach);
    }
    low = low.cwiseMax(-farthest()), high = high.cwiseMin(farthest());
    // Twice: the first look may find the box far too large.
    for (int look = 0; look < 2; ++look) look_around(low, high);
    axes_.assign(static_cast<std::size_t>(rank_), {});
    for (int i = 0; i < rank_; ++i) {
      Axis& axis = axes_[static_cast<std::size_t>(i)];
      axis.step = steps_[i];
      // Zero is a node: symmetric problems get symmetric grids.
      axis.low = axis.step * std::floor(low[i] / axis.step);
      axis.count = static_cast<std::int64_t>(std::ceil((high[i] - axis.low) / axis.step)) + 1;
      expected_nodes_ /= axis.step;
    }
  }

  /// Looks at a coarse grid; shrinks the box to what counts and finds the steps.
  void look_around(Vector& low, Vector& high) {
    constexpr int kPerAxis[] = {256, 64, 30, 16, 10, 7};
    const int per_axis = kPerAxis[rank_ - 1];
    const Vector spacing = (high - low) / (per_axis - 1);
    Vector chi = low, inner_low = high, inner_high = low, whitened;
    std::vector<double> forms(components_.size());
    std::vector<Vector> slopes(components_.size());
    std::vector<int> index(static_cast<std::size_t>(rank_), 0);
    steps_ = Vector::Constant(rank_, std::numbers::pi * std::sqrt(2.0 / range_.digits));
    double inside = 0;
    for (bool more = true; more; more = advance(index, per_axis)) {
      for (int i = 0; i < rank_; ++i) {
        chi[i] = low[i] + spacing[i] * index[static_cast<std::size_t>(i)];
      }
      for (std::size_t k = 0; k < components_.size(); ++k) {
        whitened = components_[k].whitener * (chi - components_[k].mean);
        forms[k] = whitened.squaredNorm();
        slopes[k] = chi - components_[k].whitener.transpose() * whitened;
      }
      const double log_phi = -0.5 * chi.squaredNorm(), log_relevant = log_sum(forms.data());
      const double s = log_relevant - log_phi;
      if (s > largest_log_ || std::max(log_phi, log_relevant) < -cut()) continue;
      ++inside;
      inner_low = inner_low.cwiseMin(chi), inner_high = inner_high.cwiseMax(chi);
      // What is asked for here: less where the density is small, and where the transition of
      // exp(-e^u w) is at a u that does not count.
      const double digits =
          range_.digits + std::max(log_phi, log_relevant) - std::max(0.0, s - range_.log_L);
      if (digits < 1.0) continue;
      for (std::size_t k = 0; k < components_.size(); ++k) {
        const double share = components_[k].log_weight - 0.5 * forms[k] - log_relevant;
        if (share < std::log(0.01)) continue;
        for (int i = 0; i < rank_; ++i) {
          const double y = std::min(0.5 * std::numbers::pi / std::abs(slopes[k][i]),
                                    std::sqrt(2.0 * range_.digits));
          steps_[i] = std::min(steps_[i], 2.0 * std::numbers::pi * y / (digits + 0.5 * y * y));
        }
      }
    }
    expected_nodes_ = inside * spacing.prod();
    low = low.cwiseMax(inner_low - spacing), high = high.cwiseMin(inner_high + spacing);
  }

  static bool advance(std::vector<int>& index, int per_axis) {
    for (int& i : index) {
      if (++i < per_axis) return true;
      i = 0;
    }
    return false;
  }

  int rank_;
  EvidenceRange range_;
  double largest_log_;
  std::vector<Gaussian> components_;
  Vector steps_;
  std::vector<Axis> axes_;
  double expected_nodes_ = 0;
  LogHistogram histogram_;
  std::int64_t nodes_ = 0;
};

}  // namespace

std::unique_ptr<Evidence> grid_evidence(const EvidenceBlock& block, const EvidenceRange& range,
                                        double most_work, const Workers& workers) {
  constexpr int kMostAxes = 6;  // as look_around knows
  const auto rank = block.components.front().mean.size();
  if (rank > kMostAxes) return nullptr;
  if (rank == 0) {  // theta = 0: one atom
    double weight = 0;
    for (const MixtureComponent& component : block.components) weight += component.weight;
    return mellin_evidence({weight, Vector(0), Matrix(0, 0)}, range);
  }
  auto out = std::make_unique<GridEvidence>(block, range);
  if (!(out->work() <= most_work)) return nullptr;
  out->fill(workers);
  return out;
}

}  // namespace headflow
