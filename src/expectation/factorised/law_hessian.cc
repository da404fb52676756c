#include "expectation/factorised/law_hessian.h"

#include <algorithm>

namespace headflow::factorised {

LawCoordinates::LawCoordinates(const SignalComponents& signal, int heads, int blocks)
    : signal_(signal), H_(heads), blocks_(blocks) {
  for (int c = 0; c < signal.count(); ++c) {
    const Matrix& second = signal.second[at(c)];
    const auto found = std::ranges::find(second_, second);
    kind_.push_back(static_cast<int>(found - second_.begin()));
    if (found == second_.end()) second_.push_back(second);
  }
  int next = kinds() * H_ * (H_ + 1) / 2;
  for (int c = 0; c < signal.count(); ++c) {
    const bool zero = signal.mean[at(c)].isZero(0.0);
    first_mean_.push_back(zero ? -1 : next);
    if (!zero) next += H_;
  }
  first_block_ = next;
}

int LawCoordinates::means() const {
  return static_cast<int>(std::ranges::count_if(first_mean_, [](int i) { return i >= 0; }));
}

Vector LawCoordinates::gather(const LossAndBars<double>& bars) const {
  Vector out = Vector::Zero(size());
  for (int c = 0; c < signal_.count(); ++c) {
    for (int h = 0; h < H_; ++h) {
      for (int k = 0; k <= h; ++k) {
        const double both = bars.laws.q(c, h, k) + bars.laws.q(c, k, h);
        out[covariance(kind_of(c), h, k)] += h == k ? 0.5 * both : both;
      }
      if (mean(c, h) >= 0) out[mean(c, h)] = bars.laws.mean(c, h);
    }
  }
  for (int i = 0; i < blocks_; ++i) out[block(i)] = bars.blocks[at(i)];
  return out;
}

Matrix LawCoordinates::jacobian(const Parameters<double>& point) const {
  const int F = point.F, first_R = H_ * F, first_block = first_R + H_ * H_;
  const Eigen::Map<const Matrix> m(point.m.data(), H_, F), R(point.R.data(), H_, H_);
  Matrix J = Matrix::Zero(size(), first_block + blocks_);
  for (int kind = 0; kind < kinds(); ++kind) {
    const Matrix mS = m * second_[at(kind)];
    for (int h = 0; h < H_; ++h) {
      for (int k = 0; k <= h; ++k) {  // h = k: both halves of a square
        auto row = J.row(covariance(kind, h, k));
        row.segment(h * F, F) += mS.row(k);
        row.segment(k * F, F) += mS.row(h);
        row.segment(first_R + h * H_, H_) += R.row(k);
        row.segment(first_R + k * H_, H_) += R.row(h);
      }
    }
  }
  for (int c = 0; c < signal_.count(); ++c) {
    for (int h = 0; h < H_ && mean(c, h) >= 0; ++h) {
      J.row(mean(c, h)).segment(h * F, F) = signal_.mean[at(c)];
    }
  }
  for (int i = 0; i < blocks_; ++i) J(block(i), first_block + i) = 1;
  return J;
}

Matrix LawCoordinates::hessian(const Parameters<double>& point, const Vector& gradient,
                               const Matrix& second) const {
  const int F = point.F, first_R = H_ * F;
  const Matrix J = jacobian(point);
  Matrix out = J.transpose() * second * J;
  for (int kind = 0; kind < kinds(); ++kind) {
    for (int h = 0; h < H_; ++h) {
      for (int k = 0; k < H_; ++k) {
        const double bar = gradient[covariance(kind, h, k)] * (h == k ? 2 : 1);
        out.block(h * F, k * F, F, F) += bar * second_[at(kind)];
        for (int j = 0; j < H_; ++j) out(first_R + h * H_ + j, first_R + k * H_ + j) += bar;
      }
    }
  }
  return out;
}

}  // namespace headflow::factorised
