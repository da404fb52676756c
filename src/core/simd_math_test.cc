#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd_math_test.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void ExpAll(const double* x, std::size_t count, double* out) {
  const hn::CappedTag<double, 8> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(simd::Exp(d, hn::LoadU(d, x + i)), d, out + i);
  }
}

void SinCosAll(const double* x, std::size_t count, double* sine, double* cosine) {
  const hn::CappedTag<double, 8> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> s, c;
    simd::SinCosTurn(d, hn::LoadU(d, x + i), s, c);
    hn::StoreU(s, d, sine + i);
    hn::StoreU(c, d, cosine + i);
  }
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "support/each_target.h"

namespace headflow {
HWY_EXPORT(ExpAll);
HWY_EXPORT(SinCosAll);

namespace {

TEST(SimdMath, ExpIsWithinThreeUlp) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> wide(-708, 709), narrow(-2, 2);
  std::vector<double> x(40000), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 ? wide(generator) : narrow(generator);
  testing::for_each_target([&](std::int64_t target) {
    HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), x.size(), y.data());
    // Without fused multiply-add the reduced argument itself is rounded: |x| ulp more.
    const bool fused = target == HWY_AVX2 || target == HWY_AVX3;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = std::exp(static_cast<long double>(x[i]));
      const double ulp =
          std::nextafter(static_cast<double>(exact), HUGE_VAL) - static_cast<double>(exact);
      const double allowed = fused ? 3.0 : 3.0 + std::abs(x[i]);
      ASSERT_LE(std::abs(static_cast<double>(y[i] - exact)), allowed * ulp) << x[i];
    }
  });
}

TEST(SimdMath, ExpOfVeryNegativeIsZero) {
  const std::vector<double> x = {-708.1, -1000, -1e5, -1e300, -HUGE_VAL, -709, -750, -1e10};
  std::vector<double> y(x.size());
  testing::for_each_target([&](std::int64_t) {
    HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), x.size(), y.data());
    for (const double value : y) EXPECT_EQ(value, 0.0);
  });
}

TEST(SimdMath, SinCosTurnIsAccurate) {
  std::vector<double> x(8000), s(x.size()), c(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) / 7999.0;
  testing::for_each_target([&](std::int64_t) {
    HWY_DYNAMIC_DISPATCH(SinCosAll)(x.data(), x.size(), s.data(), c.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double angle = 2.0L * std::numbers::pi_v<long double> * x[i];
      ASSERT_NEAR(s[i], static_cast<double>(std::sin(angle)), 3.5e-16) << x[i];
      ASSERT_NEAR(c[i], static_cast<double>(std::cos(angle)), 3.5e-16) << x[i];
    }
  });
}

}  // namespace
}  // namespace headflow
#endif  // HWY_ONCE
