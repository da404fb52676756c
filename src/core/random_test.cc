#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
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

/// The two normals of 64 bits, as core/random.cc says what they are.
std::pair<double, double> box_muller(std::uint64_t bits) {
  const long double u = (static_cast<long double>(bits >> 24) + 0.5L) * 0x1p-40L;
  const long double radius = std::sqrt(-2 * std::log(u));
  const auto step = static_cast<long double>(bits >> 1 & 0x3FFFFF);
  const long double angle = 2 * std::numbers::pi_v<long double> * (step + 0.5L) * 0x1p-24L;
  return {static_cast<double>(radius * std::cos(angle)) * (bits >> 23 & 1 ? -1 : 1),
          static_cast<double>(radius * std::sin(angle)) * (bits & 1 ? -1 : 1)};
}

TEST(Random, VectorNormalsAreBoxMuller) {
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 1001}) {
    testing::for_each_target([&](std::int64_t) {
      std::vector<double> out(static_cast<std::size_t>(count) * kLanes);
      fill_normals(kKey, 3, count, out.data());
      for (int lane = 0; lane < kLanes; ++lane) {
        RandomStream stream(kKey, static_cast<std::uint64_t>(3 * kLanes + lane));
        for (int j = 0; j < count; j += 2) {
          const auto [x, y] = box_muller(stream.bits());
          ASSERT_NEAR(out[static_cast<std::size_t>(j * kLanes + lane)], x, 2e-15);
          if (j + 1 == count) continue;
          ASSERT_NEAR(out[static_cast<std::size_t>((j + 1) * kLanes + lane)], y, 2e-15);
        }
      }
    });
  }
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

// Means of products of one to three neighbours, to the fourth power each, over 4e6 of them: 124
// means within five errors, a false alarm in 14,000 seeds.
TEST(Random, NeighboursAreIndependent) {
  constexpr int kCount = 1000, kGroups = 2000;
  std::vector<double> sums(125, 0.0), out(kCount * kLanes);
  for (std::uint64_t group = 0; group < kGroups; ++group) {
    fill_normals({43, Purpose::test, 0}, group, kCount, out.data());
    for (std::size_t i = 0; i + 2 * kLanes < out.size(); ++i) {
      if (i % (4 * kLanes) >= kLanes) continue;  // each number once
      const double x = out[i], y = out[i + kLanes], z = out[i + 2 * kLanes];
      double px = 1;
      for (std::size_t a = 0; a < 5; ++a, px *= x) {
        double py = px;
        for (std::size_t b = 0; b < 5; ++b, py *= y) {
          double pz = py;
          for (std::size_t c = 0; c < 5; ++c, pz *= z) sums[25 * a + 5 * b + c] += pz;
        }
      }
    }
  }
  const double n = sums[0], moment[] = {1, 0, 1, 0, 3, 0, 15, 0, 105};
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) {
      for (std::size_t c = 0; c < 5; ++c) {
        const double mean = moment[a] * moment[b] * moment[c];
        const double error =
            std::sqrt((moment[2 * a] * moment[2 * b] * moment[2 * c] - mean * mean) / n);
        EXPECT_NEAR(sums[25 * a + 5 * b + c] / n, mean, 5 * error + 1e-12) << a << b << c;
      }
    }
  }
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
