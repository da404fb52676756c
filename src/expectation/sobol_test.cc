#include "expectation/sobol.h"

#include <gtest/gtest.h>

#include <boost/random/sobol.hpp>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "support/each_target.h"

namespace headflow::sobol_test {
namespace {

const StreamKey kKey{42, Purpose::test, 3};

/// Coordinate j of every point of a randomisation.
std::vector<double> coordinate(const ScrambledSobol& sobol, int randomisation, int log2_points,
                               int j) {
  std::vector<double> out(std::size_t{1} << log2_points);
  for (std::size_t group = 0; group < out.size() / kLanes; ++group) {
    sobol.uniforms(randomisation, static_cast<std::int64_t>(group), j, 1,
                   out.data() + group * kLanes);
  }
  return out;
}

/// True if each of the 2^a x 2^(m-a) boxes, for every a, holds one of the 2^m points.
bool is_net(const std::vector<double>& x, const std::vector<double>& y, int m) {
  for (int a = 0; a <= m; ++a) {
    std::vector<int> count(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto column = static_cast<std::size_t>(std::ldexp(x[i], a));
      const auto row = static_cast<std::size_t>(std::ldexp(y[i], m - a));
      if (++count[column << (m - a) | row] > 1) return false;
    }
  }
  return true;
}

// The first two coordinates are a (0, m, 2)-net in base 2, and scrambling keeps that. Negative
// control: with one coordinate of two points exchanged it is none.
TEST(Sobol, FirstTwoCoordinatesAreANet) {
  const int m = 10;
  ScrambledSobol sobol(2, m, 3);
  sobol.scramble(kKey);
  for (int r = 0; r < 3; ++r) {
    EXPECT_TRUE(is_net(coordinate(sobol, r, m, 0), coordinate(sobol, r, m, 1), m));
  }
  std::vector<double> exchanged = coordinate(sobol, 0, m, 1);
  std::swap(exchanged[0], exchanged[1]);
  EXPECT_FALSE(is_net(coordinate(sobol, 0, m, 0), exchanged, m)) << "negative control";
}

TEST(Sobol, EveryCoordinateIsStratified) {
  const int m = 8;
  ScrambledSobol sobol(ScrambledSobol::kMostDimensions, m, 2);
  sobol.scramble(kKey);
  for (int j = 0; j < ScrambledSobol::kMostDimensions; ++j) {
    std::vector<int> count(std::size_t{1} << m);
    for (const double u : coordinate(sobol, 1, m, j)) {
      ++count[static_cast<std::size_t>(std::ldexp(u, m))];
    }
    ASSERT_EQ(count, std::vector<int>(std::size_t{1} << m, 1)) << "coordinate " << j;
  }
}

// A lower triangular matrix with unit diagonal leaves the first digit, and a shift flips it for
// all points or none: first digits are Boost's, which come in the order of the Gray code.
TEST(Sobol, FirstDigitsAreBoosts) {
  const int m = 9, dimensions = ScrambledSobol::kMostDimensions;
  ScrambledSobol sobol(dimensions, m, 1);
  sobol.scramble(kKey);
  std::vector<std::vector<double>> points(std::size_t{1} << m);
  for (std::size_t group = 0; group < points.size() / kLanes; ++group) {
    std::vector<double> lanes(static_cast<std::size_t>(dimensions) * kLanes);
    sobol.uniforms(0, static_cast<std::int64_t>(group), 0, dimensions, lanes.data());
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      points[group * kLanes + k % kLanes].push_back(lanes[k]);
    }
  }
  boost::random::sobol reference(static_cast<std::size_t>(dimensions));
  for (std::size_t n = 1; n < points.size(); ++n) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(dimensions); ++j) {
      const bool digit = reference() >> 63;
      ASSERT_EQ((points[n ^ n >> 1][j] < 0.5) != (points[0][j] < 0.5), digit) << n << " " << j;
    }
  }
}

// Over 4096 randomisations, one coordinate of one point is uniform, and independent of the others
// and of other points' (whose products have mean 1/4 exactly for pairwise independent digits).
// Moments within 4.5 standard errors, 36 numbers: false-alarm rate 2.5e-4.
TEST(Sobol, PointsAreUniformAndCoordinatesIndependent) {
  const int randomisations = 4096, dimensions = 8;
  ScrambledSobol sobol(dimensions, 5, randomisations);
  sobol.scramble(kKey);
  double product[dimensions][dimensions] = {}, mean[dimensions] = {};
  for (int r = 0; r < randomisations; ++r) {
    double u[dimensions * kLanes];
    sobol.uniforms(r, 2, 0, dimensions, u);
    for (int i = 0; i < dimensions; ++i) {
      const double x = std::sqrt(12.0) * (u[i * kLanes + 5] - 0.5);
      mean[i] += x;
      for (int j = 0; j < i; ++j) product[i][j] += x * std::sqrt(12.0) * (u[j * kLanes + 5] - 0.5);
    }
  }
  const double allowed = 4.5 * std::sqrt(randomisations);
  for (int i = 0; i < dimensions; ++i) {
    EXPECT_LT(std::abs(mean[i]), allowed);
    for (int j = 0; j < i; ++j) EXPECT_LT(std::abs(product[i][j]), allowed);
  }
}

TEST(Sobol, NeverZeroOrOneAndNewWithTheKey) {
  ScrambledSobol sobol(3, 6, 2);
  sobol.scramble(kKey);
  const std::vector<double> first = coordinate(sobol, 0, 6, 2);
  for (const double u : first) {
    EXPECT_EQ(std::fmod(std::ldexp(u, 53), 2.0), 1.0);
    EXPECT_LT(u, 1.0);
  }
  EXPECT_NE(first, coordinate(sobol, 1, 6, 2));
  sobol.scramble({42, Purpose::test, 4});
  EXPECT_NE(first, coordinate(sobol, 0, 6, 2));
  sobol.scramble(kKey);
  EXPECT_EQ(first, coordinate(sobol, 0, 6, 2));
}

TEST(Sobol, NormalsAreQuantilesOnEveryInstructionSet) {
  const int dimensions = 5, m = 7;
  ScrambledSobol sobol(dimensions, m, 1);
  sobol.scramble(kKey);
  std::map<std::int64_t, std::vector<double>> normals;
  testing::for_each_target([&](std::int64_t target) {
    std::vector<double> z(dimensions * kLanes), u(z.size());
    for (std::int64_t group = 0; group < (1 << m) / kLanes; ++group) {
      sobol.normals(0, group, 0, dimensions, z.data());
      sobol.uniforms(0, group, 0, dimensions, u.data());
      for (std::size_t k = 0; k < z.size(); ++k) {
        EXPECT_NEAR(0.5 * std::erfc(-z[k] / std::sqrt(2.0)), u[k], 2e-15);
      }
      normals[target].insert(normals[target].end(), z.begin(), z.end());
    }
  });
  if (normals.contains(HWY_AVX2) && normals.contains(HWY_AVX3)) {
    EXPECT_EQ(normals[HWY_AVX2], normals[HWY_AVX3]) << "both have fused multiply-add: same bits";
  }
}

}  // namespace
}  // namespace headflow::sobol_test
