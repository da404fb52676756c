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

void ExpPairAll(const double* x, std::size_t count, double* rise, double* fall) {
  const hn::CappedTag<double, 8> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> up, down;
    simd::ExpPair(d, hn::LoadU(d, x + i), up, down);
    hn::StoreU(up, d, rise + i);
    hn::StoreU(down, d, fall + i);
  }
}

void NormalQuantileAll(const double* u, std::size_t count, double* out) {
  const hn::CappedTag<double, 8> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(simd::NormalQuantile(d, hn::LoadU(d, u + i)), d, out + i);
  }
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "support/each_target.h"

namespace headflow {
HWY_EXPORT(ExpAll);
HWY_EXPORT(ExpPairAll);
HWY_EXPORT(NormalQuantileAll);

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

TEST(SimdMath, ExpPairIsWithinFourUlp) {
  std::mt19937_64 generator(2);
  std::uniform_real_distribution<double> wide(-700, 700), narrow(-2, 2);
  std::vector<double> x(40000), rise(x.size()), fall(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 ? wide(generator) : narrow(generator);
  testing::for_each_target([&](std::int64_t target) {
    HWY_DYNAMIC_DISPATCH(ExpPairAll)(x.data(), x.size(), rise.data(), fall.data());
    const bool fused = target == HWY_AVX2 || target == HWY_AVX3;
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (const bool up : {true, false}) {
        const auto exact = static_cast<double>(std::exp(up ? 1.0L * x[i] : -1.0L * x[i]));
        const double ulp = std::nextafter(exact, HUGE_VAL) - exact;
        const double allowed = fused ? 4.0 : 4.0 + std::abs(x[i]);
        ASSERT_LE(std::abs((up ? rise : fall)[i] - exact), allowed * ulp) << x[i];
      }
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

TEST(SimdMath, NormalQuantileIsWithin1e15) {
  std::mt19937_64 generator(2);
  std::uniform_real_distribution<double> uniform(0, 1), power(-53, -1);
  std::vector<double> u = {0x1p-53, 1 - 0x1p-53, 0.5 + 0x1p-53, 0.5 - 0x1p-53,
                           0.075,   0.925,       0x1p-52,       0.5 + 0x1p-30};
  while (u.size() < 24000) {
    u.push_back((std::floor(uniform(generator) * 0x1p52) + 0.5) * 0x1p-52);
    u.push_back((std::floor(std::exp2(power(generator)) * 0x1p52) + 0.5) * 0x1p-52);
    u.push_back(1 - u.back());
  }
  u.resize(24000);
  std::vector<double> exact(u.size()), z(u.size());
  const boost::math::normal_distribution<long double> normal;
  for (std::size_t i = 0; i < u.size(); ++i) {
    exact[i] = static_cast<double>(quantile(normal, static_cast<long double>(u[i])));
  }
  testing::for_each_target([&](std::int64_t) {
    HWY_DYNAMIC_DISPATCH(NormalQuantileAll)(u.data(), u.size(), z.data());
    for (std::size_t i = 0; i < u.size(); ++i) {
      ASSERT_NEAR(z[i], exact[i], 1e-15 * std::abs(exact[i])) << u[i];
    }
  });
}

}  // namespace
}  // namespace headflow
#endif  // HWY_ONCE
