// A head may spend less than one (its sink b_h takes the rest); v rescales all heads.

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/softmax_1.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "model/activations/per_head-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
ActivationKernels Softmax1Kernels() { return PerHead<true>::Kernels(); }
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
HWY_EXPORT(Softmax1Kernels);

const Activation& softmax_1() {
  static const Activation activation({.name = "softmax-1",
                                      .formula = "v e^chi_hl / (e^b_h + sum_l e^chi_hl)",
                                      .trains_b = true,
                                      .trains_v = true,
                                      .factorisation = Factorisation::heads_with_sink},
                                     [] { return HWY_DYNAMIC_DISPATCH(Softmax1Kernels)(); });
  return activation;
}

}  // namespace headflow
#endif  // HWY_ONCE
