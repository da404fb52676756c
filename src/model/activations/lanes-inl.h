// Loads and stores of lane groups, for the activations.

#if defined(HEADFLOW_MODEL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADFLOW_MODEL_LANES_INL_H_
#undef HEADFLOW_MODEL_LANES_INL_H_
#else
#define HEADFLOW_MODEL_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "core/simd_math-inl.h"
#include "model/activation.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using LaneTag = hn::CappedTag<double, kLanes>;
using V = hn::Vec<LaneTag>;
inline constexpr LaneTag d{};
/// Lanes of a hardware vector; a loop over `off` with this step covers a group of 8.
HWY_INLINE int Step() { return static_cast<int>(hn::Lanes(d)); }

HWY_INLINE double* At(double* base, int index) {
  return base + static_cast<std::ptrdiff_t>(index) * kLanes;
}
HWY_INLINE V Load(const double* base, int index) {
  return hn::Load(d, base + static_cast<std::ptrdiff_t>(index) * kLanes);
}
HWY_INLINE void Store(V value, double* base, int index) {
  hn::Store(value, d, base + static_cast<std::ptrdiff_t>(index) * kLanes);
}
HWY_INLINE void AddTo(V value, double* base, int index) {
  Store(hn::Add(Load(base, index), value), base, index);
}

/// 2^mu of a head and placement, looked up if the caller knows it.
HWY_INLINE V SignalFactor(const PlacementBatch& batch, int off, int index) {
  if (batch.factor) return Load(batch.factor + off, index);
  return simd::Exp2(d, Load(batch.mu + off, index));
}

}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
