// Sums known by their Gram matrix: chi numbers against their law, the merge alone against explicit
// vectors of Haar's law, with a merge that must be rejected.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <random>

#include "core/aligned.h"
#include "sgd/lane_grams.h"
#include "sgd/state.h"
#include "support/effort.h"
#include "support/two_samples.h"

namespace headflow::grams_test {
namespace {

const int kDraws = testing::by_effort(800, 10000, 40000);

/// One-sided bound of Kolmogorov's distance that is passed with probability 1e-4.
double kolmogorov_bound(double n) { return std::sqrt(-0.5 * std::log(0.5e-4) / n); }

/// The largest distance of the values' distribution from chi with dof degrees of freedom.
double distance_from_chi(std::vector<double> values, double dof) {
  std::sort(values.begin(), values.end());
  const boost::math::chi_squared law(dof);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double n = static_cast<double>(values.size());
    if (i % 20 != 0) continue;  // the cumulative law is costly; a gap of 20 / n is no matter
    const double p = cdf(law, values[i] * values[i]);
    largest = std::max({largest, std::abs(p - static_cast<double>(i) / n),
                        std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return largest;
}

// False alarms: 10 comparisons at 1e-4 each.
TEST(SgdGramLaw, ChiNumbersHaveTheirLaw) {
  for (const double dof : {2.0, 3.0, 10.0, 9996.0, 1e9}) {
    SCOPED_TRACE(dof);
    std::vector<double> lanes, scalar;
    RandomStream stream({7, Purpose::test, 0}, 0);
    AlignedVector normal(kLanes), uniform(kLanes), out(kLanes);
    for (std::uint64_t g = 0; g < static_cast<std::uint64_t>(kDraws / kLanes); ++g) {
      fill_normals({1, Purpose::sgd_chunk, 0}, g, 1, normal.data());
      fill_uniforms({1, Purpose::sgd_chunk_choice, 0}, g, 1, uniform.data());
      lane_chi({1, Purpose::sgd_retry, 0}, {g, 0}, dof, normal.data(), uniform.data(), out.data());
      lanes.insert(lanes.end(), out.begin(), out.end());
      for (int i = 0; i < kLanes; ++i) scalar.push_back(random_chi(stream, dof));
    }
    const double bound = kolmogorov_bound(kDraws);
    EXPECT_LT(distance_from_chi(lanes, dof), bound);
    EXPECT_LT(distance_from_chi(scalar, dof), bound);
    if (dof < 4) {
      EXPECT_GT(distance_from_chi(lanes, dof + 1), bound) << "control";
    }
  }
}

Matrix random_matrix(std::mt19937_64& generator, int rows, int columns) {
  std::normal_distribution<double> normal;
  Matrix out(rows, columns);
  for (double& x : out.reshaped()) x = normal(generator);
  return out;
}

Matrix haar_rows(std::mt19937_64& generator, int n, int dimension) {
  const Matrix normal = random_matrix(generator, dimension, n);
  const Eigen::HouseholderQR<Matrix> qr(normal);
  Matrix out = qr.householderQ() * Matrix::Identity(dimension, n);
  for (int j = 0; j < n; ++j) {  // a QR decomposition fixes no signs
    if (qr.matrixQR()(j, j) < 0) out.col(j) *= -1;
  }
  return out.transpose();
}

Vector lower_part(const Matrix& K) {
  Vector out(static_cast<Eigen::Index>(triangle(static_cast<int>(K.rows()))));
  Eigen::Index k = 0;
  for (Eigen::Index i = 0; i < K.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) out[k++] = K(i, j);
  }
  return out;
}

/// Gram matrices of V1 Q1 + V2 Q2: by vectors as they are, and by lane_merge.
struct Merges {
  Matrix vectors, merged;
  Vector without_cross_terms;
};

Merges merge_often(int n, int beyond, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  const Matrix V1 = random_matrix(generator, n, n), V2 = random_matrix(generator, n, n);
  const Matrix K1 = V1 * V1.transpose(), K2 = V2 * V2.transpose();
  const auto size = static_cast<Eigen::Index>(triangle(n));
  Merges out{Matrix(kDraws, size), Matrix(kDraws, size), lower_part(K1 + K2)};
  for (int r = 0; r < kDraws; ++r) {
    const Matrix V = V1 * haar_rows(generator, n, beyond) + V2 * haar_rows(generator, n, beyond);
    out.vectors.row(r) = lower_part(V * V.transpose());
  }
  const auto spread = [&](const Vector& values) {
    AlignedVector lanes(static_cast<std::size_t>(values.size()) * kLanes);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = values[static_cast<Eigen::Index>(i / kLanes)];
    }
    return lanes;
  };
  const AlignedVector other = spread(lower_part(K2));
  AlignedVector scratch(merge_scratch(n) * kLanes), wishart(triangle(n) * kLanes),
      normals(static_cast<std::size_t>(n * n) * kLanes);
  std::normal_distribution<double> normal;
  for (int r = 0; r < kDraws; r += kLanes) {
    for (double& x : normals) x = normal(generator);
    for (double& x : wishart) x = normal(generator);
    for (int i = 0; i < n; ++i) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        std::chi_squared_distribution<double> chi(beyond - n - i);
        wishart[(triangle(i) + static_cast<std::size_t>(i)) * kLanes + l] =
            std::sqrt(chi(generator));
      }
    }
    AlignedVector K = spread(lower_part(K1));
    lane_merge(n, normals.data(), wishart.data(), other.data(), K.data(), scratch.data());
    for (int l = 0; l < kLanes; ++l) {
      for (Eigen::Index k = 0; k < size; ++k) {
        out.merged(r + l, k) = K[static_cast<std::size_t>(k * kLanes + l)];
      }
    }
  }
  return out;
}

// False alarms: below 4e-4 in all.
TEST(SgdGramLaw, MergeIsThatOfHaarsLaw) {
  for (const auto& [n, beyond] : {std::pair{2, 25}, {3, 25}, {2, 5}, {3, 7}}) {
    SCOPED_TRACE(fmt::format("n {} D' {}", n, beyond));
    const Merges merges = merge_often(n, beyond, static_cast<std::uint64_t>(100 * n + beyond));
    const testing::SameLaw same = testing::compare_laws(merges.vectors, merges.merged);
    EXPECT_GT(same.corrected_p(), 1e-4);
    // Controls: no cross terms, and another dimension.
    const Matrix constant = merges.without_cross_terms.transpose().replicate(kDraws, 1);
    EXPECT_LT(testing::compare_laws(merges.vectors, constant).corrected_p(), 1e-12);
    const Merges wrong = merge_often(n, beyond + 2, static_cast<std::uint64_t>(100 * n + beyond));
    if (beyond < 10 && kDraws >= 10000) {
      EXPECT_LT(testing::compare_laws(merges.vectors, wrong.merged).corrected_p(), 1e-6);
    }
  }
}

TEST(SgdGramLaw, CholeskyAndProducts) {
  std::mt19937_64 generator(3);
  const int n = 4;
  Matrix M = random_matrix(generator, n, 2);  // of rank 2
  const Matrix K = M * M.transpose();
  AlignedVector lanes(triangle(n) * kLanes), root(lanes.size()), gram(lanes.size(), 0.0);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      std::fill_n(&lanes[(triangle(i) + static_cast<std::size_t>(j)) * kLanes], kLanes, K(i, j));
    }
  }
  lane_cholesky(n, lanes.data(), root.data());
  lane_add_gram(n, root.data(), gram.data());
  for (std::size_t i = 0; i < lanes.size(); ++i) EXPECT_NEAR(gram[i], lanes[i], 1e-12);
}

}  // namespace
}  // namespace headflow::grams_test
