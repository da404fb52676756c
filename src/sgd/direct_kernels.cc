#include "sgd/direct_kernels.h"

#include <algorithm>

#include "core/index.h"
#include "core/random.h"
#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sgd/direct_kernels.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, kLanes>;
using V = hn::Vec<D>;
constexpr D d{};
constexpr std::size_t kEight = kLanes;
constexpr std::size_t kStep = std::min<std::size_t>(kEight, HWY_LANES(double));
constexpr std::size_t kParts = kEight / kStep;

/// Eight partial sums, whatever the vector width: lane i has the terms i, i + 8, i + 16, ...
struct Sum {
  V part[kParts];
  Sum() {
    for (V& p : part) p = hn::Zero(d);
  }
  HWY_INLINE void add(const double* a, const double* b) {
    for (std::size_t p = 0; p < kParts; ++p) {
      part[p] = hn::MulAdd(hn::Load(d, a + p * kStep), hn::Load(d, b + p * kStep), part[p]);
    }
  }
  HWY_INLINE double total() const {
    HWY_ALIGN double x[kEight];
    for (std::size_t p = 0; p < kParts; ++p) hn::Store(part[p], d, x + p * kStep);
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  }
};

/// Dot products of rows k..k+kRows-1 with one token.
template <int kRows>
HWY_INLINE void Dots(std::size_t stride, const double* k, const double* x, std::size_t step,
                     double* out) {
  Sum sum[kRows];
  for (std::size_t j = 0; j < stride; j += kEight) {
    HWY_UNROLL(4)
    for (std::size_t h = 0; h < kRows; ++h) sum[h].add(k + h * stride + j, x + j);
  }
  for (std::size_t h = 0; h < kRows; ++h) out[h * step] = sum[h].total();
}

void Scores(int heads, int tokens, std::size_t stride, const double* k, const double* x,
            std::size_t chi_step, std::size_t token_step, double* chi) {
  const auto H = at(heads);
  for (std::size_t t = 0; t < at(tokens); ++t) {
    const double* token = x + t * stride;
    std::size_t h = 0;
    const auto out = [&] { return chi + h * chi_step + t * token_step; };
    for (; h + 4 <= H; h += 4) Dots<4>(stride, k + h * stride, token, chi_step, out());
    for (; h + 2 <= H; h += 2) Dots<2>(stride, k + h * stride, token, chi_step, out());
    for (; h < H; ++h) Dots<1>(stride, k + h * stride, token, chi_step, out());
  }
}

void GramProduct(int tokens, std::size_t stride, const double* x, const double* w, double* out) {
  constexpr std::size_t kPanel = 512;  // of a row; what was just read is read again from L1
  const auto L = at(tokens);
  HWY_ALIGN double r[kPanel];
  std::fill_n(out, L, 0.0);
  for (std::size_t from = 0; from < stride; from += kPanel) {
    const std::size_t n = std::min(kPanel, stride - from);
    for (std::size_t j = 0; j < n; j += hn::Lanes(d)) {
      V sum = hn::Zero(d);
      for (std::size_t t = 0; t < L; ++t) {
        sum = hn::MulAdd(hn::Set(d, w[t]), hn::Load(d, x + t * stride + from + j), sum);
      }
      hn::Store(sum, d, r + j);
    }
    for (std::size_t t = 0; t < L; ++t) {
      Sum sum;
      for (std::size_t j = 0; j < n; j += kEight) sum.add(r + j, x + t * stride + from + j);
      out[t] += sum.total();
    }
  }
}

void Outer(int heads, int tokens, std::size_t stride, const double* g, std::size_t g_step,
           std::size_t token_step, const double* x, double* sum) {
  const auto L = at(tokens), H = at(heads);
  constexpr std::size_t kPanel = 256;
  for (std::size_t from = 0; from < stride; from += kPanel) {
    const std::size_t n = std::min(kPanel, stride - from);
    for (std::size_t h = 0; h < H; ++h) {
      double* row = sum + h * stride + from;
      for (std::size_t j = 0; j < n; j += hn::Lanes(d)) {
        V value = hn::Load(d, row + j);
        for (std::size_t t = 0; t < L; ++t) {
          value = hn::MulAdd(hn::Set(d, g[h * g_step + t * token_step]),
                             hn::Load(d, x + t * stride + from + j), value);
        }
        hn::Store(value, d, row + j);
      }
    }
  }
}

void Add(int rows, std::size_t stride, const double* weight, const double* x, double* y) {
  for (std::size_t j = 0; j < stride; j += hn::Lanes(d)) {
    V value = hn::Load(d, y + j);
    for (std::size_t f = 0; f < at(rows); ++f) {
      value = hn::MulAdd(hn::Set(d, weight[f]), hn::Load(d, x + f * stride + j), value);
    }
    hn::Store(value, d, y + j);
  }
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {

HWY_EXPORT(Scores);
HWY_EXPORT(GramProduct);
HWY_EXPORT(Outer);
HWY_EXPORT(Add);

void direct_scores(int heads, int tokens, std::size_t stride, const double* k, const double* x,
                   std::size_t chi_step, std::size_t token_step, double* chi) {
  HWY_DYNAMIC_DISPATCH(Scores)(heads, tokens, stride, k, x, chi_step, token_step, chi);
}
void direct_gram_product(int tokens, std::size_t stride, const double* x, const double* w,
                         double* out) {
  HWY_DYNAMIC_DISPATCH(GramProduct)(tokens, stride, x, w, out);
}
void direct_outer(int heads, int tokens, std::size_t stride, const double* g, std::size_t g_step,
                  std::size_t token_step, const double* x, double* sum) {
  HWY_DYNAMIC_DISPATCH(Outer)(heads, tokens, stride, g, g_step, token_step, x, sum);
}
void direct_add(int rows, std::size_t stride, const double* weight, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(Add)(rows, stride, weight, x, y);
}

}  // namespace headflow
#endif  // HWY_ONCE
