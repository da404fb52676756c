#include "expectation/sampled_sums.h"

#include <numbers>

#include "core/error.h"
#include "core/random.h"

namespace headflow {

Point point_of_sums(const Problem& problem, const Vector& values) {
  const SumLayout layout(problem);
  const int H = layout.H, F = layout.F;
  Point out = problem.zero_point();
  for (int h = 0; h < H; ++h) {
    const int row = layout.weights() + h * (F + H);
    for (int f = 0; f < F; ++f) out.m(h, f) = values[row + f];
    for (int k = 0; k < H; ++k) out.R(h, k) = values[row + F + k];
  }
  out.blocks.values() = values.segment(layout.parameters(), layout.count);
  return out;
}

Matrix second_moment_of_sums(const SumLayout& layout, const Vector& values) {
  return Eigen::Map<const Matrix>(values.data() + layout.second_moment(), layout.H, layout.H);
}

std::int64_t checked_samples(const EngineOptions& options) {
  const std::int64_t samples = options.samples == 0 ? kDefaultSamples : options.samples;
  if (samples < 2 || samples > 1'000'000'000'000) {
    throw OptionError("run.samples", fmt::format("{}", samples),
                      "must be from 2 (an error needs two) to 10^12");
  }
  return samples;
}

void check_memory(const EngineOptions& options) {
  if (options.memory < 0) {
    throw OptionError("program.memory", fmt::format("{}", options.memory), "must not be negative");
  }
}

int checked_randomisations(const EngineOptions& options) {
  constexpr int kMostRandomisations = 4096;
  if (options.randomisations < 2 || options.randomisations > kMostRandomisations) {
    throw OptionError(
        "run.randomisations", fmt::format("{}", options.randomisations),
        fmt::format("must be from 2 (an error needs two) to {}", kMostRandomisations));
  }
  return options.randomisations;
}

void set_weights_in_bits(const Point& point, Matrix& weights) {
  weights.resize(point.heads(), point.features() + point.heads());
  weights.leftCols(point.features()) = point.m * std::numbers::log2e;
  weights.rightCols(point.heads()) = point.R * std::numbers::log2e;
}

bool always_moderate(const Problem& problem, const Matrix& weights, const Point& point,
                     const Vector& theta_bound) {
  const double chi = weights.cwiseAbs().rowwise().sum().maxCoeff() * kLargestNormal;
  const double mu = (point.m.cwiseAbs() * theta_bound).maxCoeff();
  const double shift = problem.activation().largest_shift(point.blocks);
  return chi + (mu + shift) * std::numbers::log2e <= kModerateScore;
}

bool moderate(const double* chi, int chi_count, const double* mu, int mu_count, double shift) {
  const auto largest = [](const double* values, int count) {
    return Eigen::Map<const Vector>(values, Eigen::Index{count} * kLanes).cwiseAbs().maxCoeff();
  };
  return largest(chi, chi_count) + largest(mu, mu_count) + shift * std::numbers::log2e <=
         kModerateScore;
}

PlacementBatch batch_into(const Problem& problem, const Point& point, bool second_moment,
                          double* sums) {
  const SumLayout layout(problem);
  PlacementBatch batch;
  batch.sizes = problem.sizes();
  batch.parameters = point.blocks.data();
  batch.loss = sums;
  batch.grad = lanes(sums, layout.parameters());
  if (second_moment) batch.second_moment = lanes(sums, layout.second_moment());
  return batch;
}

}  // namespace headflow
