#pragma once

// The inner loops of the factorised quadratures, for double (vectorised, chosen at run time) and
// for Dual (plain). Tables have rows of `ld` numbers, a multiple of 8, so that a row is whole
// vectors; what lies beyond the nodes in use is finite and unused.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/dual.h"

namespace headflow::factorised {

inline constexpr double kLargestExponent = 700.0;
/// Logarithms beyond this in size have exponentials that over- or underflow, nearly.
inline constexpr double kLargestLog = 690.0;

/// Rows are padded to this many numbers.
inline int padded(int n) { return (n + 7) / 8 * 8; }

/// A matrix by its first element and the distances between rows and between columns.
template <class S>
struct Strided {
  const S* data;
  std::ptrdiff_t row, column;
};

/// out[r][:] = sum_i A(r, i) B[i][:], for r < rows and i < inner; rows of `out` are `out_row`
/// numbers apart.
void multiply(int rows, int inner, int ld, Strided<double> a, const double* b, double* out,
              std::ptrdiff_t out_row);

/// Where e^t is a product of two exponentials: of these, or, with `logs`, of their logarithms,
/// which costs one more exponential and cannot over- or underflow.
enum class Given { exponentials, logs };

/// d^a/dt^a exp(-e^t) at e^t = e[j] s[i] (t = e[j] + s[i]), for a < orders <= 5: out[a][i][j].
void derivative_rows(Given given, int nodes, const double* s, int ld, const double* e, int orders,
                     double* const* out);

/// One row, summed over nodes with weights: out[a][j] = sum_i weight_i d^a f at (i, j).
void derivative_sum(Given given, int nodes, const double* s, const double* weight, int ld,
                    const double* e, int orders, double* const* out);

/// out_k = x^(L-1-k), k = 0, 1, 2, of n positive numbers (clamped at 1e-300 from below).
void token_powers(int n, double tokens, const double* x, double* p1, double* p2, double* p3);

/// One row of the tables that an adjoint meets: see Contract.
template <class S>
struct PairTables {
  const S* A[4];               ///< head I, derivatives 0..3, rows of ld
  const S* B[4];               ///< head J
  const S *T0, *T1, *X1, *X2;  ///< B0 Gb^T, B1 Kb^T, B1 Gb^T (null: left out), B2 Kb^T
  const S *R0, *R1;            ///< A0 Gb, A1 Kb
};

/// Derivatives of sum_{uu'} (Gb G + Kb K) with respect to the means, variances and covariance of
/// a pair of scores (Price's theorem), for rows first, first + step, ... < rows with weights:
///   out = { mean_I, mean_J, variance_I, variance_J, covariance }
void contract(int first, int step, int rows, int ld, const PairTables<double>& tables,
              const double* weight, double* out);

inline Dual product_of(Given given, const Dual& s, double e) {
  if (given == Given::exponentials) return s * e;
  const Dual t = s + e;
  return t.value < kLargestLog ? exp(t) : Dual(std::exp(kLargestLog));
}

inline void derivatives(const Dual& y_in, Dual* f) {
  const Dual y = y_in.value < kLargestExponent ? y_in : Dual(kLargestExponent);
  f[0] = exp(-y);
  const Dual yf = y * f[0];
  f[1] = -yf;
  f[2] = (y - 1.0) * yf;
  f[3] = ((3.0 - y) * y - 1.0) * yf;
  f[4] = (((y - 6.0) * y + 7.0) * y - 1.0) * yf;
}

inline void multiply(int rows, int inner, int ld, Strided<Dual> a, const Dual* b, Dual* out,
                     std::ptrdiff_t out_row) {
  for (int r = 0; r < rows; ++r) {
    Dual* row = out + r * out_row;
    std::fill_n(row, ld, Dual());
    for (int i = 0; i < inner; ++i) {
      const Dual x = a.data[r * a.row + i * a.column];
      const Dual* column = b + static_cast<std::ptrdiff_t>(i) * ld;
      for (int j = 0; j < ld; ++j) row[j] += x * column[j];
    }
  }
}

inline void derivative_rows(Given given, int nodes, const Dual* s, int ld, const double* e,
                            int orders, Dual* const* out) {
  for (int i = 0; i < nodes; ++i) {
    for (int j = 0; j < ld; ++j) {
      Dual f[5];
      derivatives(product_of(given, s[i], e[j]), f);
      for (int a = 0; a < orders; ++a) out[a][static_cast<std::ptrdiff_t>(i) * ld + j] = f[a];
    }
  }
}

inline void derivative_sum(Given given, int nodes, const Dual* s, const double* weight, int ld,
                           const double* e, int orders, Dual* const* out) {
  for (int j = 0; j < ld; ++j) {
    for (int a = 0; a < orders; ++a) out[a][j] = 0.0;
    for (int i = 0; i < nodes; ++i) {
      Dual f[5];
      derivatives(product_of(given, s[i], e[j]), f);
      for (int a = 0; a < orders; ++a) out[a][j] += f[a] * weight[i];
    }
  }
}

inline void contract(int first, int step, int rows, int ld, const PairTables<Dual>& t,
                     const Dual* weight, Dual* out) {
  for (int k = 0; k < 5; ++k) out[k] = 0.0;
  for (int r = first; r < rows; r += step) {
    const Dual w = weight[r], half = 0.5 * weight[r];
    for (std::ptrdiff_t j = static_cast<std::ptrdiff_t>(r) * ld, end = j + ld; j < end; ++j) {
      out[0] += w * (t.T0[j] * t.A[1][j] + t.T1[j] * t.A[2][j]);
      out[1] += w * (t.R0[j] * t.B[1][j] + t.R1[j] * t.B[2][j]);
      out[2] += half * (t.T0[j] * t.A[2][j] + t.T1[j] * t.A[3][j]);
      out[3] += half * (t.R0[j] * t.B[2][j] + t.R1[j] * t.B[3][j]);
      out[4] += w * (t.X2[j] * t.A[2][j]);
      if (t.X1) out[4] += w * (t.X1[j] * t.A[1][j]);
    }
  }
}

inline void token_powers(int n, double tokens, const Dual* x, Dual* p1, Dual* p2, Dual* p3) {
  for (int i = 0; i < n; ++i) {
    const Dual base = x[i].value > 1e-300 ? x[i] : Dual(1e-300);
    // Negative powers meet a factor 0 in the sums, but the tangents of 1/x overflow.
    p1[i] = power(base, tokens - 1);
    p2[i] = tokens < 2 ? Dual(0.0) : power(base, tokens - 2);
    p3[i] = tokens < 3 ? Dual(0.0) : power(base, tokens - 3);
  }
}

}  // namespace headflow::factorised
