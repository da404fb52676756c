// Sums over D are eight partial sums in a fixed order, bit for bit, whatever the vector width.

#include "sgd/direct_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/aligned.h"
#include "support/each_target.h"

namespace headflow::direct_kernels_test {
namespace {

using Add = double (*)(double a, double b, double sum);
double fused(double a, double b, double sum) { return std::fma(a, b, sum); }
double rounded(double a, double b, double sum) { return a * b + sum; }  // without the instruction

double eight_sums(const double* a, const double* b, std::size_t n, Add add) {
  double x[8] = {};
  for (std::size_t j = 0; j < n; ++j) x[j % 8] = add(a[j], b[j], x[j % 8]);
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

AlignedVector random(std::size_t n, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  AlignedVector out(n);
  for (double& x : out) x = normal(generator);
  return out;
}

TEST(DirectKernels, SumsDoNotDependOnTheVectorWidth) {
  const int H = 7, L = 3;
  const std::size_t h = H, l = L;
  for (const std::size_t stride : {8u, 24u, 512u, 1048u}) {
    SCOPED_TRACE(stride);
    const AlignedVector k = random(h * stride, 1), x = random(l * stride, 2), w = random(l, 3);
    testing::for_each_target([&](std::int64_t target) {
      const Add add = target == HWY_AVX2 || target == HWY_AVX3 ? fused : rounded;
      AlignedVector chi(h * l), out(l);
      direct_scores(H, L, stride, k.data(), x.data(), l, 1, chi.data());
      for (std::size_t i = 0; i < h; ++i) {
        for (std::size_t t = 0; t < l; ++t) {
          EXPECT_EQ(chi[i * l + t], eight_sums(&k[i * stride], &x[t * stride], stride, add));
        }
      }
      // Panels of 512 numbers are summed one after the other.
      direct_gram_product(L, stride, x.data(), w.data(), out.data());
      for (std::size_t t = 0; t < l; ++t) {
        double want = 0;
        for (std::size_t from = 0; from < stride; from += 512) {
          const std::size_t n = std::min<std::size_t>(512, stride - from);
          std::vector<double> r(n, 0.0);
          for (std::size_t u = 0; u < l; ++u) {
            for (std::size_t j = 0; j < n; ++j) r[j] = add(w[u], x[u * stride + from + j], r[j]);
          }
          want += eight_sums(r.data(), &x[t * stride + from], n, add);
        }
        EXPECT_EQ(out[t], want);
      }
    });
  }
}

}  // namespace
}  // namespace headflow::direct_kernels_test
