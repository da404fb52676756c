#include "expectation/factorised/path_hessian.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "core/lanes.h"
#include "expectation/factorised/kernels.h"

namespace headflow::factorised {

PathHessian::PathHessian(int heads, int numbers, const Histogram* laws)
    : heads_(heads),
      numbers_(numbers),
      size_(heads * numbers),
      wide_(padded(size_)),
      wide_x_(padded(numbers)),
      first_{laws[0].first, laws[1].first},
      all_(at(size_ * wide_), 0.0),
      own_(at(heads * numbers * wide_x_), 0.0) {
  for (int token = 0; token < 2; ++token) {
    rows_[token].assign(laws[token].mass.size() * at(wide_), 0.0);
  }
}

void PathHessian::add(const HessianNodes& nodes) {
  const int count = nodes.groups * kLanes;
  y_.assign(at(count * wide_), 0.0);
  x_.assign(at(count * wide_x_), 0.0);
  weighted_.resize(y_.size());
  xw_.resize(x_.size());
  product_.resize(at(std::max(size_ * wide_, numbers_ * wide_x_)));
  const SplinePolynomials& spline = spline_polynomials();
  for (int i = 0; i < count; ++i) {
    double *x = x_.data() + at(i * wide_x_), *y = y_.data() + at(i * wide_);
    for (int j = 0; j < numbers_; ++j) x[j] = nodes.x[j * count + i];
    for (int h = 0; h < heads_; ++h) {
      const double p = nodes.p[h * count + i];
      for (int j = 0; j < numbers_; ++j) y[h * numbers_ + j] = p * x[j];
    }
    const double c = nodes.D2[i] - nodes.D1[i];
    double* weighted = weighted_.data() + at(i * wide_);
    for (int j = 0; j < wide_; ++j) weighted[j] = c * y[j];
    // The histogram's slopes along y.
    const double scaled = nodes.t[i] / kCell, cell = std::floor(scaled), f = scaled - cell;
    double* row = rows_[nodes.token].data() +
                  (static_cast<std::int64_t>(cell) - 2 - first_[nodes.token]) * wide_;
    for (int k = 0; k < kTouched; ++k, row += wide_) {
      double slope = 0;
      for (int order = kTouched - 1; order > 0; --order)
        slope = slope * f + order * spline[order][k];
      slope *= nodes.weight / kCell;
      for (int j = 0; j < wide_; ++j) row[j] += slope * y[j];
    }
  }
  multiply(size_, count, wide_, {weighted_.data(), 1, wide_}, y_.data(), product_.data(), wide_);
  for (std::size_t i = 0; i < all_.size(); ++i) all_[i] += product_[i];
  for (int h = 0; h < heads_; ++h) {
    for (int i = 0; i < count; ++i) {
      const double c = nodes.D1[i] * nodes.p[h * count + i];
      for (int j = 0; j < wide_x_; ++j) xw_[at(i * wide_x_ + j)] = c * x_[at(i * wide_x_ + j)];
    }
    multiply(numbers_, count, wide_x_, {xw_.data(), 1, wide_x_}, x_.data(), product_.data(),
             wide_x_);
    double* own = own_.data() + at(h * numbers_ * wide_x_);
    for (int j = 0; j < numbers_ * wide_x_; ++j) own[j] += product_[at(j)];
  }
}

void PathHessian::add(const PathHessian& other) {
  const auto sum = [](AlignedVector& to, const AlignedVector& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  sum(all_, other.all_);
  sum(own_, other.own_);
  for (int token = 0; token < 2; ++token) sum(rows_[token], other.rows_[token]);
}

Matrix PathHessian::of_nodes() const {
  Matrix out(size_, size_);
  for (Eigen::Index i = 0; i < size_; ++i) {
    for (Eigen::Index j = 0; j < size_; ++j) out(i, j) = all_[at(i * wide_ + j)];
  }
  for (int h = 0; h < heads_; ++h) {
    for (int j = 0; j < numbers_; ++j) {
      for (int k = 0; k < numbers_; ++k) {
        out(h * numbers_ + j, h * numbers_ + k) += own_[at((h * numbers_ + j) * wide_x_ + k)];
      }
    }
  }
  return out;
}

Matrix PathHessian::finish(const std::vector<std::unique_ptr<PathHessian>>& sums,
                           const WeightLoss& loss) {
  const Eigen::Index each = sums[0]->size_, all = static_cast<Eigen::Index>(sums.size()) * each;
  Matrix rows[2], out = Matrix::Zero(all, all);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const PathHessian& sum = *sums[k];
    const Eigen::Index first = static_cast<Eigen::Index>(k) * each;
    out.block(first, first, each, each) = sum.of_nodes();
    for (int token = 0; token < 2; ++token) {
      const auto cells = static_cast<Eigen::Index>(sum.rows_[token].size()) / sum.wide_;
      if (k == 0) rows[token] = Matrix::Zero(cells, all);
      rows[token].middleCols(first, each) =
          Eigen::Map<const Matrix>(sum.rows_[token].data(), cells, sum.wide_).leftCols(each);
    }
  }
  return out + loss.curvature(rows);
}

}  // namespace headflow::factorised
