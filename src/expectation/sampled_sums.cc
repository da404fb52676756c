#include "expectation/sampled_sums.h"

#include <numbers>

#include "core/error.h"

namespace headflow {

void unpack_sums(const SumLayout& layout, const Vector& values, Point& out) {
  const int H = layout.H, F = layout.F;
  out.m.resize(H, F);
  out.R.resize(H, H);
  out.b.resize(H);
  for (int h = 0; h < H; ++h) {
    const int row = layout.weights() + h * (F + H);
    for (int f = 0; f < F; ++f) out.m(h, f) = values[row + f];
    for (int k = 0; k < H; ++k) out.R(h, k) = values[row + F + k];
    out.b[h] = values[layout.b() + h];
  }
  out.v = values[layout.v()];
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

bool always_moderate(const Matrix& weights, const Point& point, const Vector& theta_bound) {
  const double chi = weights.cwiseAbs().rowwise().sum().maxCoeff() * kLargestNormal;
  const double mu = (point.m.cwiseAbs() * theta_bound).maxCoeff();
  return chi + (mu + point.b.cwiseAbs().maxCoeff()) * std::numbers::log2e <= kModerateScore;
}

bool moderate(const double* chi, int chi_count, const double* mu, int mu_count,
              const Point& point) {
  const auto largest = [](const double* values, int count) {
    return Eigen::Map<const Vector>(values, Eigen::Index{count} * kLanes).cwiseAbs().maxCoeff();
  };
  const double b = point.b.cwiseAbs().maxCoeff() * std::numbers::log2e;
  return largest(chi, chi_count) + largest(mu, mu_count) + b <= kModerateScore;
}

PlacementBatch batch_into(const Problem& problem, const Point& point, bool second_moment,
                          double* sums) {
  const SumLayout layout{problem.H(), problem.F()};
  const auto lanes = [&](int index) { return sums + static_cast<std::ptrdiff_t>(index) * kLanes; };
  PlacementBatch batch;
  batch.heads = problem.H();
  batch.tokens = problem.L();
  batch.b = point.b.data();
  batch.v = point.v;
  batch.loss = sums;
  batch.grad_b = lanes(layout.b());
  batch.grad_v = lanes(layout.v());
  if (second_moment) batch.second_moment = lanes(layout.second_moment());
  return batch;
}

}  // namespace headflow
