#include "expectation/factorised/token_nodes.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "core/lanes.h"
#include "expectation/sobol.h"

namespace headflow::factorised {

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
    double square[kLanes] = {};
    for (std::size_t i = 0; i < step; ++i) {
      zeta_[g * step + i] = static_cast<float>(group[i]);
      square[i % kLanes] += group[i] * group[i];
    }
    largest_ = std::max(largest_, std::sqrt(*std::max_element(square, square + kLanes)));
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

}  // namespace headflow::factorised
