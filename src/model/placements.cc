// Samples of a placement batch one after the other, for activations, or requests, that have
// nothing faster: scores of one sample, its residuals, and what its gradient adds to the sums.

#include <algorithm>
#include <numbers>

#include "core/simd_dispatch.h"
#include "model/activation.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/placements.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "model/activations/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {

/// u = chi ln 2, with mu ln 2 at the relevant token p.
void ScoresOf(const PlacementBatch& batch, int p, double* u) {
  const int H = batch.sizes.H, L = batch.sizes.L, P = batch.placements;
  const V ln2 = hn::Set(d, std::numbers::ln2);
  for (int off = 0; off < kLanes; off += Step()) {
    const double* mu = batch.mu + off;
    for (int h = 0; h < H; ++h) {
      for (int l = h * L; l < (h + 1) * L; ++l) {
        Store(hn::Mul(Load(batch.chi + off, l), ln2), u + off, l);
      }
      const V shifted = hn::Add(Load(u + off, h * L + p), hn::Mul(Load(mu, h * P + p), ln2));
      Store(shifted, u + off, h * L + p);
    }
  }
}

/// Adds the loss of sample p; s = 2 weight w.
void ResidualsOf(const PlacementBatch& batch, int p, const double* mean, double* s) {
  for (int off = 0; off < kLanes; off += Step()) {
    const V weight = batch.weight ? Load(batch.weight + off, p) : hn::Set(d, 1.0);
    V loss = Load(batch.loss + off, 0);
    for (int l = 0; l < batch.sizes.L; ++l) {
      const V w = hn::Sub(hn::Set(d, l == p ? 1.0 : 0.0), Load(mean + off, l));
      const V weighted = hn::Mul(weight, w);
      loss = hn::Add(loss, hn::Mul(weighted, w));
      Store(hn::Add(weighted, weighted), s + off, l);
    }
    Store(loss, batch.loss + off, 0);
  }
}

/// Adds the gradient u of sample p to the total, and to the second moments.
void GradientOf(const PlacementBatch& batch, int p, const double* u, double* total) {
  const int H = batch.sizes.H, L = batch.sizes.L, P = batch.placements;
  for (int off = 0; off < kLanes; off += Step()) {
    for (int j = 0; j < H * L; ++j) {
      Store(hn::Add(Load(total + off, j), Load(u + off, j)), total + off, j);
    }
    for (int h = 0; h < H; ++h) {
      Store(Load(u + off, h * L + p), batch.g_relevant + off, h * P + p);
    }
    if (!batch.second_moment) continue;
    V once = hn::Set(d, 1.0);  // g has the weight in it already, the product twice
    if (batch.weight) {
      const V weight = Load(batch.weight + off, p);
      const auto counts = hn::Gt(weight, hn::Zero(d));
      once = hn::IfThenElseZero(counts, hn::Div(once, hn::IfThenElse(counts, weight, once)));
    }
    for (int h = 0; h < H; ++h) {
      for (int k = 0; k <= h; ++k) {
        V sum = Load(batch.second_moment + off, h * H + k);
        for (int l = 0; l < L; ++l) {
          const V product = hn::Mul(Load(u + off, h * L + l), Load(u + off, k * L + l));
          sum = hn::Add(sum, hn::Mul(product, once));
        }
        Store(sum, batch.second_moment + off, h * H + k);
        Store(sum, batch.second_moment + off, k * H + h);
      }
    }
  }
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {

HWY_EXPORT(ScoresOf);
HWY_EXPORT(ResidualsOf);
HWY_EXPORT(GradientOf);

std::size_t Activation::scratch_groups(const Sizes& sizes) const {
  const auto H = static_cast<std::size_t>(sizes.H), L = static_cast<std::size_t>(sizes.L);
  return 2 * H * L + 2 * H * kMaxPlacements + L * kMaxPlacements + 4 * L + 3 * H + 32 +
         state_groups(sizes);
}

void Activation::placements(const PlacementBatch& batch) const {
  if (batch.moderate && !batch.second_moment && has_fast_placements()) {
    return fast_placements(batch);
  }
  const Sizes& sizes = batch.sizes;
  const int H = sizes.H, L = sizes.L;
  double* u = batch.scratch;
  double* total = lanes(u, H * L);
  double* mean = lanes(total, H * L);
  double* s = lanes(mean, L);
  double* state = lanes(s, L);
  std::fill_n(total, H * L * kLanes, 0.0);
  for (int p = 0; p < batch.placements; ++p) {
    HWY_DYNAMIC_DISPATCH(ScoresOf)(batch, p, u);
    forward(sizes, batch.parameters, u, state, mean);
    HWY_DYNAMIC_DISPATCH(ResidualsOf)(batch, p, mean, s);
    backward(sizes, batch.parameters, s, u, state, batch.grad);
    HWY_DYNAMIC_DISPATCH(GradientOf)(batch, p, u, total);
  }
  std::copy_n(total, H * L * kLanes, batch.chi);
}

std::size_t Activation::together_scratch_groups(const Sizes& sizes, std::size_t placements) const {
  const auto H = static_cast<std::size_t>(sizes.H), L = static_cast<std::size_t>(sizes.L);
  return placements * (H * L + 2 * L + state_groups(sizes)) + H * L;
}

void Activation::placements_together(std::span<const PlacementBatch> batches,
                                     double* scratch) const {
  if (batches.empty()) return;
  const PlacementBatch& first = batches.front();
  const Sizes& sizes = first.sizes;
  const std::ptrdiff_t L = sizes.L, scores = sizes.H * L, P = first.placements;
  const auto count = static_cast<std::ptrdiff_t>(batches.size()) * P;
  const auto groups = static_cast<std::size_t>(count);
  double* u = scratch;
  double* mean = lanes(u, count * scores);
  double* s = lanes(mean, count * L);
  double* state = lanes(s, count * L);
  double* total = lanes(state, count * static_cast<std::ptrdiff_t>(state_groups(sizes)));
  const auto each = [&](const auto& body) {
    std::ptrdiff_t n = 0;
    for (const PlacementBatch& batch : batches) {
      for (int p = 0; p < P; ++p, ++n) body(batch, p, n);
    }
  };
  each([&](const PlacementBatch& batch, int p, std::ptrdiff_t n) {
    HWY_DYNAMIC_DISPATCH(ScoresOf)(batch, p, lanes(u, n * scores));
  });
  forward_groups(sizes, groups, first.parameters, u, state, mean);
  each([&](const PlacementBatch& batch, int p, std::ptrdiff_t n) {
    HWY_DYNAMIC_DISPATCH(ResidualsOf)(batch, p, lanes(mean, n * L), lanes(s, n * L));
  });
  backward_groups(sizes, groups, first.parameters, s, u, state, first.grad);
  each([&](const PlacementBatch& batch, int p, std::ptrdiff_t n) {
    if (p == 0) std::fill_n(total, scores * kLanes, 0.0);
    HWY_DYNAMIC_DISPATCH(GradientOf)(batch, p, lanes(u, n * scores), total);
    if (p + 1 == P) std::copy_n(total, scores * kLanes, batch.chi);
  });
}

}  // namespace headflow
#endif  // HWY_ONCE
