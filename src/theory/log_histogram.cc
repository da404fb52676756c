#include "theory/log_histogram.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headflow {
namespace {

constexpr double kSmallest = -600.0;  // e^u w is then zero for every u of interest
constexpr double kSpacing = 1.0 / 16;
constexpr int kPoints = 16;             // of a stencil
constexpr int kLeft = kPoints / 2 - 1;  // of them left of the node's cell
constexpr double kMargin = kPoints * kSpacing;

/// prod_{m != j} 1 / (j - m), the barycentric weights of equidistant points.
std::array<double, kPoints> barycentric_weights() {
  std::array<double, kPoints> out{};
  for (int j = 0; j < kPoints; ++j) {
    double& weight = out[static_cast<std::size_t>(j)];
    weight = 1.0;
    for (int m = 0; m < kPoints; ++m) {
      if (m != j) weight /= j - m;
    }
  }
  return out;
}

}  // namespace

LogHistogram::LogHistogram(double largest) : smallest_(kSmallest - kMargin), largest_(largest) {
  const double width = largest_ + kMargin - smallest_;
  const auto count = static_cast<std::size_t>(std::ceil(width / kSpacing)) + 1;
  relevant_.assign(count, 0.0);
  irrelevant_.assign(count, 0.0);
}

void LogHistogram::add(double s, double relevant, double irrelevant) {
  static const std::array<double, kPoints> kWeights = barycentric_weights();
  const double position = (std::clamp(s, kSmallest, largest_) - smallest_) / kSpacing;
  const double cell = std::floor(position), tau = position - cell;
  const std::size_t first = static_cast<std::size_t>(cell) - kLeft;
  if (tau == 0.0) {
    relevant_[first + kLeft] += relevant;
    irrelevant_[first + kLeft] += irrelevant;
    return;
  }
  double product = 1.0;
  for (int j = 0; j < kPoints; ++j) product *= tau + (kLeft - j);
  for (int j = 0; j < kPoints; ++j) {
    const auto place = static_cast<std::size_t>(j);
    const double weight = product * kWeights[place] / (tau + (kLeft - j));
    relevant_[first + place] += weight * relevant;
    irrelevant_[first + place] += weight * irrelevant;
  }
}

void LogHistogram::add(const LogHistogram& other) {
  for (std::size_t j = 0; j < relevant_.size(); ++j) {
    relevant_[j] += other.relevant_[j];
    irrelevant_[j] += other.irrelevant_[j];
  }
}

void LogHistogram::finish() {
  used_.clear();
  for (std::size_t j = 0; j < relevant_.size(); ++j) {
    if (relevant_[j] != 0.0 || irrelevant_[j] != 0.0) used_.push_back(j);
  }
}

EvidenceValues LogHistogram::at(double u) const {
  EvidenceValues out{0, 0, 0};
  for (const std::size_t j : used_) {
    const double x = std::exp(u + smallest_ + kSpacing * static_cast<double>(j));
    const double lost = -std::expm1(-x), left = x < 0.5 ? 1.0 - lost : std::exp(-x);
    out.h += relevant_[j] * left;
    out.Q += relevant_[j] * (x > 1e-30 ? lost / x : 1.0);
    out.g += irrelevant_[j] * left;
  }
  return out;
}

}  // namespace headflow
