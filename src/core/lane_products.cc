#include "core/lane_products.h"

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/lane_products.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, kLanes>;
using V = hn::Vec<D>;
constexpr D d{};
constexpr int kStep = std::min(kLanes, static_cast<int>(HWY_LANES(double)));

// Register tiles: AVX-512 has 32 vector registers, the others 16. The tile does not
// change the order in which any one result is summed.
constexpr bool kManyRegisters = HWY_LANES(double) >= 8;
constexpr int kScoreRows = kManyRegisters ? 8 : 4;
constexpr int kOuterRows = 4;
constexpr int kOuterColumns = kManyRegisters ? 6 : 2;

HWY_INLINE V Sample(const double* x) { return hn::Load(d, x); }
HWY_INLINE V Sample(const float* x) {
  const hn::Rebind<float, D> df;
  return hn::PromoteTo(d, hn::LoadU(df, x));
}

/// Calls body with the compile-time tile size min(largest, left).
template <int largest, class Body>
HWY_INLINE void WithTile(int left, const Body& body) {
  if (left >= largest) {
    body(std::integral_constant<int, largest>());
  } else if constexpr (largest > 1) {
    WithTile<largest - 1>(left, body);
  }
}

template <int kRows, int kTokens, class T>
HWY_INLINE void ScoreTile(const double* HWY_RESTRICT W, int stride, int columns,
                          const T* HWY_RESTRICT x, int tokens, std::ptrdiff_t next,
                          double* HWY_RESTRICT out) {
  V sum[kRows][kTokens];
  HWY_UNROLL(8)
  for (int h = 0; h < kRows; ++h) {
    HWY_UNROLL(2)
    for (int t = 0; t < kTokens; ++t) sum[h][t] = hn::Zero(d);
  }
  for (int k = 0; k < columns; ++k) {
    V sample[kTokens];
    HWY_UNROLL(2)
    for (int t = 0; t < kTokens; ++t) {
      const T* xt = x + (t * columns + k) * kLanes;
      sample[t] = Sample(xt);
      hwy::Prefetch(xt + next);
    }
    HWY_UNROLL(8)
    for (int h = 0; h < kRows; ++h) {
      const V weight = hn::Set(d, W[h * stride + k]);
      HWY_UNROLL(2)
      for (int t = 0; t < kTokens; ++t) sum[h][t] = hn::MulAdd(weight, sample[t], sum[h][t]);
    }
  }
  HWY_UNROLL(8)
  for (int h = 0; h < kRows; ++h) {
    HWY_UNROLL(2)
    for (int t = 0; t < kTokens; ++t) {
      hn::Store(sum[h][t], d, out + (static_cast<std::ptrdiff_t>(h) * tokens + t) * kLanes);
    }
  }
}

template <class T>
void Scores(const double* W, int stride, int rows, int columns, const T* x, int tokens,
            std::ptrdiff_t next, double* out) {
  for (int off = 0; off < kLanes; off += kStep) {
    for (int t = 0; t < tokens; t += 2) {
      const T* xt = x + static_cast<std::ptrdiff_t>(t) * columns * kLanes + off;
      int h = 0;
      while (h < rows) {
        WithTile<kScoreRows>(rows - h, [&](auto tile) HWY_ATTR {
          const double* Wh = W + h * stride;
          double* oh = out + (static_cast<std::ptrdiff_t>(h) * tokens + t) * kLanes + off;
          if (t + 1 < tokens) {
            ScoreTile<tile(), 2>(Wh, stride, columns, xt, tokens, next, oh);
          } else {
            ScoreTile<tile(), 1>(Wh, stride, columns, xt, tokens, next, oh);
          }
          h += tile();
        });
      }
    }
  }
}

template <int kRows, int kColumns, class T>
HWY_INLINE void OuterTile(int columns, int stride, int tokens, int groups,
                          const double* HWY_RESTRICT g, std::ptrdiff_t g_step,
                          const T* HWY_RESTRICT x, std::ptrdiff_t x_step,
                          double* HWY_RESTRICT sum) {
  V tile[kRows][kColumns];
  HWY_UNROLL(4)
  for (int h = 0; h < kRows; ++h) {
    HWY_UNROLL(6)
    for (int k = 0; k < kColumns; ++k) tile[h][k] = hn::Load(d, sum + (h * stride + k) * kLanes);
  }
  for (int n = 0; n < groups; ++n) {
    const double* gt = g + n * g_step;
    const T* xt = x + n * x_step;
    for (int t = 0; t < tokens; ++t) {
      V row[kRows];
      HWY_UNROLL(4)
      for (int h = 0; h < kRows; ++h) {
        row[h] = hn::Load(d, gt + static_cast<std::ptrdiff_t>(h) * tokens * kLanes);
      }
      HWY_UNROLL(6)
      for (int k = 0; k < kColumns; ++k) {
        const V sample = Sample(xt + k * kLanes);
        HWY_UNROLL(4)
        for (int h = 0; h < kRows; ++h) tile[h][k] = hn::MulAdd(row[h], sample, tile[h][k]);
      }
      gt += kLanes;
      xt += columns * kLanes;
    }
  }
  HWY_UNROLL(4)
  for (int h = 0; h < kRows; ++h) {
    HWY_UNROLL(6)
    for (int k = 0; k < kColumns; ++k) hn::Store(tile[h][k], d, sum + (h * stride + k) * kLanes);
  }
}

template <class T>
void Outer(int rows, int columns, int stride, int tokens, int groups, const double* g,
           std::ptrdiff_t g_step, const T* x, std::ptrdiff_t x_step, double* sum) {
  for (int off = 0; off < kLanes; off += kStep) {
    int h = 0;
    while (h < rows) {
      WithTile<kOuterRows>(rows - h, [&](auto row_tile) HWY_ATTR {
        const double* gh = g + static_cast<std::ptrdiff_t>(h) * tokens * kLanes + off;
        int k = 0;
        while (k < columns) {
          WithTile<kOuterColumns>(columns - k, [&](auto column_tile) HWY_ATTR {
            OuterTile<row_tile(), column_tile()>(columns, stride, tokens, groups, gh, g_step,
                                                 x + k * kLanes + off, x_step,
                                                 sum + (h * stride + k) * kLanes + off);
            k += column_tile();
          });
        }
        h += row_tile();
      });
    }
  }
}

template <class T>
void Lookup(int rows, int placements, const double* table, const T* index, std::ptrdiff_t next,
            int row_step, int step, double* out) {
  for (int p = 0; p < placements; ++p) {
    hwy::Prefetch(index + p * kLanes + next);
#if HWY_MAX_BYTES >= 64
    const hn::RebindToSigned<D> di;
    const auto lanes = hn::IndicesFromVec(d, hn::ConvertTo(di, Sample(index + p * kLanes)));
    for (int h = 0; h < rows; ++h) {
      const V value = hn::TableLookupLanes(hn::Load(d, table + h * kLanes), lanes);
      hn::Store(value, d, out + static_cast<std::ptrdiff_t>(h * row_step + p * step) * kLanes);
    }
#else
    for (int h = 0; h < rows; ++h) {
      for (int i = 0; i < kLanes; ++i) {
        const auto k = static_cast<std::ptrdiff_t>(index[p * kLanes + i]);
        out[static_cast<std::ptrdiff_t>(h * row_step + p * step) * kLanes + i] =
            table[h * kLanes + k];
      }
    }
#endif
  }
}

void CloseBatch(int count, int squared, const double* inverse_size, double* batch, double* total,
                double* squares) {
  for (int off = 0; off < kLanes; off += kStep) {
    const V inverse = hn::Load(d, inverse_size + off);
    for (int j = 0; j < count; ++j) {
      const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(j) * kLanes + off;
      const V value = hn::Load(d, batch + i);
      hn::Store(hn::Add(hn::Load(d, total + i), value), d, total + i);
      if (j < squared) {
        const V square = hn::Mul(hn::Mul(value, value), inverse);
        hn::Store(hn::Add(hn::Load(d, squares + i), square), d, squares + i);
      }
      hn::Store(hn::Zero(d), d, batch + i);
    }
  }
}

void ScoresDouble(const double* W, int stride, int rows, int columns, const double* x, int tokens,
                  std::ptrdiff_t next, double* out) {
  Scores(W, stride, rows, columns, x, tokens, next, out);
}
void ScoresFloat(const double* W, int stride, int rows, int columns, const float* x, int tokens,
                 std::ptrdiff_t next, double* out) {
  Scores(W, stride, rows, columns, x, tokens, next, out);
}
void LookupDouble(int rows, int placements, const double* table, const double* index,
                  std::ptrdiff_t next, int row_step, int step, double* out) {
  Lookup(rows, placements, table, index, next, row_step, step, out);
}
void LookupFloat(int rows, int placements, const double* table, const float* index,
                 std::ptrdiff_t next, int row_step, int step, double* out) {
  Lookup(rows, placements, table, index, next, row_step, step, out);
}
void OuterDouble(int rows, int columns, int stride, int tokens, int groups, const double* g,
                 std::ptrdiff_t g_step, const double* x, std::ptrdiff_t x_step, double* sum) {
  Outer(rows, columns, stride, tokens, groups, g, g_step, x, x_step, sum);
}
void OuterFloat(int rows, int columns, int stride, int tokens, int groups, const double* g,
                std::ptrdiff_t g_step, const float* x, std::ptrdiff_t x_step, double* sum) {
  Outer(rows, columns, stride, tokens, groups, g, g_step, x, x_step, sum);
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {

HWY_EXPORT(ScoresDouble);
HWY_EXPORT(ScoresFloat);
HWY_EXPORT(LookupDouble);
HWY_EXPORT(LookupFloat);
HWY_EXPORT(OuterDouble);
HWY_EXPORT(OuterFloat);
HWY_EXPORT(CloseBatch);

void lane_scores(const double* W, int stride, int rows, int columns, const double* x, int tokens,
                 std::ptrdiff_t next, double* out) {
  HWY_DYNAMIC_DISPATCH(ScoresDouble)(W, stride, rows, columns, x, tokens, next, out);
}
void lane_scores(const double* W, int stride, int rows, int columns, const float* x, int tokens,
                 std::ptrdiff_t next, double* out) {
  HWY_DYNAMIC_DISPATCH(ScoresFloat)(W, stride, rows, columns, x, tokens, next, out);
}
void lane_lookup(int rows, int placements, const double* table, const double* index,
                 std::ptrdiff_t next, int row_step, int step, double* out) {
  HWY_DYNAMIC_DISPATCH(LookupDouble)(rows, placements, table, index, next, row_step, step, out);
}
void lane_lookup(int rows, int placements, const double* table, const float* index,
                 std::ptrdiff_t next, int row_step, int step, double* out) {
  HWY_DYNAMIC_DISPATCH(LookupFloat)(rows, placements, table, index, next, row_step, step, out);
}
void lane_outer(int rows, int columns, int stride, int tokens, int groups, const double* g,
                std::ptrdiff_t g_step, const double* x, std::ptrdiff_t x_step, double* sum) {
  HWY_DYNAMIC_DISPATCH(OuterDouble)
  (rows, columns, stride, tokens, groups, g, g_step, x, x_step, sum);
}
void lane_outer(int rows, int columns, int stride, int tokens, int groups, const double* g,
                std::ptrdiff_t g_step, const float* x, std::ptrdiff_t x_step, double* sum) {
  HWY_DYNAMIC_DISPATCH(OuterFloat)
  (rows, columns, stride, tokens, groups, g, g_step, x, x_step, sum);
}
void lane_close_batch(int count, int squared, const double* inverse_size, double* batch,
                      double* total, double* squares) {
  HWY_DYNAMIC_DISPATCH(CloseBatch)(count, squared, inverse_size, batch, total, squares);
}

}  // namespace headflow
#endif  // HWY_ONCE
