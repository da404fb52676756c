#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "support/each_target.h"

namespace headflow::random_test {
namespace {

const StreamKey kKey{0x123456789abcdef0u, Purpose::test, 77};

// The vectorised Philox is checked against Random123's own, number by number.
TEST(Random, VectorUniformsAreRandom123s) {
  const int count = 9;
  for (const std::uint64_t group : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 35}) {
    testing::for_each_target([&](std::int64_t) {
      std::vector<double> out(static_cast<std::size_t>(count) * kLanes);
      fill_uniforms(kKey, group, count, out.data());
      for (int lane = 0; lane < kLanes; ++lane) {
        RandomStream stream(kKey, group * kLanes + static_cast<std::uint64_t>(lane));
        for (int j = 0; j < count; ++j) {
          ASSERT_EQ(out[static_cast<std::size_t>(j * kLanes + lane)], stream.uniform());
        }
      }
    });
  }
}

TEST(Random, VectorNormalsAreBoxMuller) {
  const int count = 7;
  testing::for_each_target([&](std::int64_t) {
    std::vector<double> out(static_cast<std::size_t>(count) * kLanes);
    fill_normals(kKey, 3, count, out.data());
    for (int lane = 0; lane < kLanes; ++lane) {
      RandomStream stream(kKey, static_cast<std::uint64_t>(3 * kLanes + lane));
      for (int j = 0; j < count; ++j) {
        ASSERT_NEAR(out[static_cast<std::size_t>(j * kLanes + lane)], stream.normal(), 4e-15);
      }
    }
  });
}

// Kolmogorov-Smirnov at 10^6 numbers; the threshold 2.2 sqrt(N) has a false-alarm rate of 1.3e-4.
double ks_statistic(std::vector<double> z, double scale) {
  std::sort(z.begin(), z.end());
  const auto n = static_cast<double>(z.size());
  double worst = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double cdf = 0.5 * std::erfc(-z[i] / (scale * std::numbers::sqrt2));
    worst =
        std::max({worst, (static_cast<double>(i) + 1) / n - cdf, cdf - static_cast<double>(i) / n});
  }
  return worst * std::sqrt(n);
}

TEST(Random, NormalsAreNormal) {
  const int count = 125;
  std::vector<double> all;
  for (std::uint64_t group = 0; group < 1000; ++group) {
    std::vector<double> out(static_cast<std::size_t>(count) * kLanes);
    fill_normals({42, Purpose::test, 0}, group, count, out.data());
    all.insert(all.end(), out.begin(), out.end());
  }
  EXPECT_LT(ks_statistic(all, 1.0), 2.2);
  EXPECT_GT(ks_statistic(all, 1.01), 2.2) << "negative control: a scale off by 1 % must be seen";
  EXPECT_LT(*std::max_element(all.begin(), all.end()), kLargestNormal);
}

TEST(Random, StreamsDiffer) {
  const auto first = [](const StreamKey& key, std::uint64_t item) {
    return RandomStream(key, item).bits();
  };
  const std::uint64_t base = first({1, Purpose::noise, 0}, 0);
  EXPECT_NE(base, first({2, Purpose::noise, 0}, 0));
  EXPECT_NE(base, first({1, Purpose::signal, 0}, 0));
  EXPECT_NE(base, first({1, Purpose::noise, 1}, 0));
  EXPECT_NE(base, first({1, Purpose::noise, 0}, 1));
  EXPECT_EQ(base, first({1, Purpose::noise, 0}, 0));
}

}  // namespace
}  // namespace headflow::random_test
