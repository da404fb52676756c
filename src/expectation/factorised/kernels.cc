#include "expectation/factorised/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "expectation/factorised/kernels.cc"
#include "core/simd_dispatch.h"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::factorised::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = headflow::HWY_NAMESPACE::simd;
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

/// kRows rows and kVectors vectors of columns in registers.
template <int kRows, int kVectors>
HWY_INLINE void Block(int inner, int ld, Strided<double> a, const double* HWY_RESTRICT b,
                      double* HWY_RESTRICT out, std::ptrdiff_t out_row) {
  const D d;
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (int c = 0; c < kVectors; ++c) sum[r][c] = hn::Zero(d);
  }
  for (int i = 0; i < inner; ++i) {
    V column[kVectors];
    HWY_UNROLL(2) for (int c = 0; c < kVectors; ++c) column[c] = hn::LoadU(d, b + c * N);
    HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a.data[r * a.row]);
      HWY_UNROLL(2) for (int c = 0; c < kVectors; ++c) {
        sum[r][c] = hn::MulAdd(x, column[c], sum[r][c]);
      }
    }
    a.data += a.column;
    b += ld;
  }
  HWY_UNROLL(8) for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int c = 0; c < kVectors; ++c) hn::StoreU(sum[r][c], d, out + r * out_row + c * N);
  }
}

template <int kVectors>
HWY_INLINE void Columns(int rows, int inner, int ld, Strided<double> a, const double* b,
                        double* out, std::ptrdiff_t out_row) {
  int r = 0;
  const auto part = [&] { return Strided<double>{a.data + r * a.row, a.row, a.column}; };
  const auto to = [&] { return out + r * out_row; };
  constexpr int kMost = kVectors == 1 ? 8 : 4;
  for (; r + kMost <= rows; r += kMost) Block<kMost, kVectors>(inner, ld, part(), b, to(), out_row);
  if (kMost == 8 && r + 4 <= rows) {
    Block<4, kVectors>(inner, ld, part(), b, to(), out_row);
    r += 4;
  }
  switch (rows - r) {
    case 1: Block<1, kVectors>(inner, ld, part(), b, to(), out_row); break;
    case 2: Block<2, kVectors>(inner, ld, part(), b, to(), out_row); break;
    case 3: Block<3, kVectors>(inner, ld, part(), b, to(), out_row); break;
    default: break;
  }
}

void Multiply(int rows, int inner, int ld, Strided<double> a, const double* b, double* out,
              std::ptrdiff_t out_row) {
  const int N = static_cast<int>(hn::Lanes(D()));
  int j = 0;
  for (; j + 2 * N <= ld; j += 2 * N) Columns<2>(rows, inner, ld, a, b + j, out + j, out_row);
  for (; j + N <= ld; j += N) Columns<1>(rows, inner, ld, a, b + j, out + j, out_row);
}

/// exp(-e^t) and its derivatives in t, from y = e^t.
HWY_INLINE void Derivatives(D d, V y, int orders, V* f) {
  y = hn::Min(y, hn::Set(d, kLargestExponent));
  f[0] = simd::Exp(d, hn::Neg(y));
  const V yf = hn::Mul(y, f[0]);
  f[1] = hn::Neg(yf);
  if (orders <= 2) return;
  const V one = hn::Set(d, 1.0);
  f[2] = hn::Mul(hn::Sub(y, one), yf);
  f[3] = hn::Mul(hn::MulSub(hn::Sub(hn::Set(d, 3.0), y), y, one), yf);
  const V inner = hn::MulAdd(hn::Sub(y, hn::Set(d, 6.0)), y, hn::Set(d, 7.0));
  f[4] = hn::Mul(hn::MulSub(inner, y, one), yf);
}

/// y = e^t from two factors, or from the two parts of t; beyond log kLargestExponent all is zero.
template <bool kLogs>
HWY_INLINE V Product(D d, V a, V b) {
  if constexpr (!kLogs) return hn::Mul(a, b);
  return simd::Exp(d, hn::Clamp(hn::Add(a, b), hn::Set(d, -kLargestLog), hn::Set(d, 10.0)));
}

template <bool kLogs>
void DerivativeRowsOf(int nodes, const double* s, int ld, const double* e, int orders,
                      double* const* out) {
  const D d;
  const int N = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < nodes; ++i) {
    const V scale = hn::Set(d, s[i]);
    for (int j = 0; j < ld; j += N) {
      V f[5];
      Derivatives(d, Product<kLogs>(d, scale, hn::LoadU(d, e + j)), orders, f);
      for (int a = 0; a < orders; ++a) {
        hn::StoreU(f[a], d, out[a] + static_cast<std::ptrdiff_t>(i) * ld + j);
      }
    }
  }
}

template <bool kLogs>
void DerivativeSumOf(int nodes, const double* s, const double* weight, int ld, const double* e,
                     int orders, double* const* out) {
  const D d;
  const int N = static_cast<int>(hn::Lanes(d));
  for (int j = 0; j < ld; j += N) {
    V sum[5] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const V at = hn::LoadU(d, e + j);
    for (int i = 0; i < nodes; ++i) {
      V f[5];
      Derivatives(d, Product<kLogs>(d, hn::Set(d, s[i]), at), 5, f);
      const V w = hn::Set(d, weight[i]);
      HWY_UNROLL(5) for (int a = 0; a < 5; ++a) sum[a] = hn::MulAdd(w, f[a], sum[a]);
    }
    for (int a = 0; a < orders; ++a) hn::StoreU(sum[a], d, out[a] + j);
  }
}

void DerivativeRows(Given given, int nodes, const double* s, int ld, const double* e, int orders,
                    double* const* out) {
  (given == Given::logs ? DerivativeRowsOf<true> : DerivativeRowsOf<false>)(nodes, s, ld, e, orders,
                                                                            out);
}
void DerivativeSum(Given given, int nodes, const double* s, const double* weight, int ld,
                   const double* e, int orders, double* const* out) {
  (given == Given::logs ? DerivativeSumOf<true> : DerivativeSumOf<false>)(nodes, s, weight, ld, e,
                                                                          orders, out);
}

void Contract(int first, int step, int rows, int ld, const PairTables<double>& t,
              const double* weight, double* out) {
  const D d;
  // Eight running sums whatever the width of a vector: the same bits everywhere.
  constexpr int kStep = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;
  constexpr int kParts = 8 / kStep;
  V sum[5][kParts];
  for (auto& row : sum) {
    for (V& x : row) x = hn::Zero(d);
  }
  for (int r = first; r < rows; r += step) {
    const V w = hn::Set(d, weight[r]);
    const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(r) * ld;
    for (std::ptrdiff_t column = begin; column < begin + ld; column += 8) {
      HWY_UNROLL(kParts) for (int p = 0; p < kParts; ++p) {
        const std::ptrdiff_t j = column + p * kStep;
        const auto at = [&](const double* table) { return hn::LoadU(d, table + j); };
        const V A1 = at(t.A[1]), A2 = at(t.A[2]), B1 = at(t.B[1]), B2 = at(t.B[2]);
        const V T0 = hn::Mul(w, at(t.T0)), T1 = hn::Mul(w, at(t.T1));
        const V R0 = hn::Mul(w, at(t.R0)), R1 = hn::Mul(w, at(t.R1));
        sum[0][p] = hn::MulAdd(T0, A1, hn::MulAdd(T1, A2, sum[0][p]));
        sum[1][p] = hn::MulAdd(R0, B1, hn::MulAdd(R1, B2, sum[1][p]));
        sum[2][p] = hn::MulAdd(T0, A2, hn::MulAdd(T1, at(t.A[3]), sum[2][p]));
        sum[3][p] = hn::MulAdd(R0, B2, hn::MulAdd(R1, at(t.B[3]), sum[3][p]));
        V cross = hn::Mul(at(t.X2), A2);
        if (t.X1) cross = hn::MulAdd(at(t.X1), A1, cross);
        sum[4][p] = hn::MulAdd(w, cross, sum[4][p]);
      }
    }
  }
  for (int k = 0; k < 5; ++k) {
    double lanes[8], total = 0;
    for (int p = 0; p < kParts; ++p) hn::StoreU(sum[k][p], d, lanes + p * kStep);
    for (const double x : lanes) total += x;
    out[k] = (k == 2 || k == 3) ? 0.5 * total : total;
  }
}

void TokenPowers(int n, double tokens, const double* x, double* p1, double* p2, double* p3) {
  const D d;
  const int N = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < n; i += N) {
    const V base = hn::Max(hn::LoadU(d, x + i), hn::Set(d, 1e-300));
    const V log = simd::Log(d, base);
    const V most = hn::Set(d, kLargestExponent);
    for (int k = 1; k <= 3; ++k) {
      const V power = simd::Exp(d, hn::Min(hn::Mul(log, hn::Set(d, tokens - k)), most));
      hn::StoreU(power, d, (k == 1 ? p1 : k == 2 ? p2 : p3) + i);
    }
  }
}

}  // namespace
}  // namespace headflow::factorised::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow::factorised {

HWY_EXPORT(Multiply);
HWY_EXPORT(DerivativeRows);
HWY_EXPORT(DerivativeSum);
HWY_EXPORT(Contract);
HWY_EXPORT(TokenPowers);

void multiply(int rows, int inner, int ld, Strided<double> a, const double* b, double* out,
              std::ptrdiff_t out_row) {
  HWY_DYNAMIC_DISPATCH(Multiply)(rows, inner, ld, a, b, out, out_row);
}
void derivative_rows(Given given, int nodes, const double* s, int ld, const double* e, int orders,
                     double* const* out) {
  HWY_DYNAMIC_DISPATCH(DerivativeRows)(given, nodes, s, ld, e, orders, out);
}
void derivative_sum(Given given, int nodes, const double* s, const double* weight, int ld,
                    const double* e, int orders, double* const* out) {
  HWY_DYNAMIC_DISPATCH(DerivativeSum)(given, nodes, s, weight, ld, e, orders, out);
}
void contract(int first, int step, int rows, int ld, const PairTables<double>& tables,
              const double* weight, double* out) {
  HWY_DYNAMIC_DISPATCH(Contract)(first, step, rows, ld, tables, weight, out);
}
void token_powers(int n, double tokens, const double* x, double* p1, double* p2, double* p3) {
  HWY_DYNAMIC_DISPATCH(TokenPowers)(n, tokens, x, p1, p2, p3);
}

}  // namespace headflow::factorised
#endif
