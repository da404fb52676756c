#pragma once

// Which instruction sets the vectorised files are compiled for; the best one the
// machine has is chosen at run time. Included before hwy/foreach_target.h.
// AVX2 and AVX-512 give the same bits (fused multiply-add, same order of sums);
// older processors, which lack it, agree to rounding.

#if defined(HEADFLOW_ONE_TARGET) && defined(__x86_64__)  // the baseline is always kept, too
#undef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#include <hwy/detect_targets.h>

// Vectors whose length is known at run time only (SVE, RVV) are left out: kernels keep arrays of
// vectors, and tile registers by their number. There, NEON or plain code serves.
#undef HWY_DISABLED_TARGETS
#define HEADFLOW_SCALABLE_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#ifdef HEADFLOW_ONE_TARGET
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HEADFLOW_SCALABLE_TARGETS)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HEADFLOW_SCALABLE_TARGETS)
#endif
