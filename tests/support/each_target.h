#pragma once

#include <gtest/gtest.h>

#include "core/simd_dispatch.h"
// clang-format off
#include <hwy/highway.h>
// clang-format on

namespace headflow::testing {

/// Runs body(target) once for every instruction set that was compiled and that this machine has.
template <class Body>
void for_each_target(const Body& body) {
  // The last entry is plain scalar code, which every machine has.
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR}) {
    if (!(HWY_TARGETS & target)) continue;
    if (target != HWY_SCALAR && !(hwy::SupportedTargets() & target)) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    body(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace headflow::testing
