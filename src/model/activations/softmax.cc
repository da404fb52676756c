// The standard attention weights: every head spends a total of one.

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/softmax.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "model/activations/per_head-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
ActivationKernels SoftmaxKernels() { return PerHead<false>::Kernels(); }
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
HWY_EXPORT(SoftmaxKernels);

const Activation& softmax() {
  static const Activation activation({.name = "softmax",
                                      .formula = "e^chi_hl / sum_l e^chi_hl",
                                      .trains_b = false,
                                      .trains_v = false,
                                      .factorisation = Factorisation::heads},
                                     [] { return HWY_DYNAMIC_DISPATCH(SoftmaxKernels)(); });
  return activation;
}

}  // namespace headflow
#endif  // HWY_ONCE
