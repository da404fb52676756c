#include "sgd/lane_grams.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "core/simd_dispatch.h"
#include "sgd/state.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sgd/lane_grams.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, kLanes>;
using V = hn::Vec<D>;
constexpr D d{};
constexpr int kStep = std::min(kLanes, static_cast<int>(HWY_LANES(double)));

/// An array of groups of 8, seen from one vector of lanes.
struct View {
  const double* p;
  V operator[](std::size_t i) const { return hn::Load(d, p + i * kLanes); }
};
struct Out {
  double* p;
  V operator[](std::size_t i) const { return hn::Load(d, p + i * kLanes); }
  void set(std::size_t i, V x) const { hn::Store(x, d, p + i * kLanes); }
};

constexpr std::size_t entry(int i, int j, int columns) { return at(i) * at(columns) + at(j); }
constexpr std::size_t lower(int i, int j) { return triangle(i) + at(j); }

/// Bit i is set if lane i accepts its proposal a v, v = (1 + y)^3, y = x / (9 a)^(1/2) for a normal
/// number x and a = dof / 2 - 1/3: if log u < f, f = x^2 / 2 + a (1 - v + log v). For |y| < 1/4
/// f > -a y^4 (f = -3/4 a y^4 (1 - 4/5 y + 2/3 y^2 - ...)), and log u < u - 1: nearly always
/// that much decides.
int Chi(double dof, const double* normal, const double* uniform, double* out) {
  const double shape = dof / 2 - 1.0 / 3;
  const V a = hn::Set(d, shape), one = hn::Set(d, 1.0);
  int accepted = 0;
  for (int off = 0; off < kLanes; off += kStep) {
    const V x = hn::Load(d, normal + off), u = hn::Load(d, uniform + off);
    const V y = hn::Mul(hn::Set(d, 1 / std::sqrt(9 * shape)), x), t = hn::Add(y, one);
    const V v = hn::Mul(t, hn::Mul(t, t)), y2 = hn::Mul(y, y);
    hn::Store(hn::Sqrt(hn::Mul(hn::Set(d, 2 * shape), hn::Max(v, hn::Zero(d)))), d, out + off);
    auto good = hn::And(hn::Lt(u, hn::NegMulAdd(a, hn::Mul(y2, y2), one)),
                        hn::Lt(y2, hn::Set(d, 1.0 / 16)));
    if (!hn::AllTrue(d, good)) {
      const V log_v = simd::Log(d, hn::Max(v, hn::Set(d, 1e-300)));
      const V bound =
          hn::MulAdd(hn::Set(d, 0.5), hn::Mul(x, x), hn::Mul(a, hn::Add(hn::Sub(one, v), log_v)));
      good = hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(simd::Log(d, u), bound));
    }
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, good, bits);
    accepted |= (bits[0] & ((1 << kStep) - 1)) << off;
  }
  return accepted;
}

void Cholesky(int n, const double* K, double* V_) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View k{K + off};
    const Out v{V_ + off};
    for (int j = 0; j < n; ++j) {
      V pivot = k[lower(j, j)];
      const V least = hn::Mul(pivot, hn::Set(d, 1e-14));
      for (int l = 0; l < j; ++l) pivot = hn::NegMulAdd(v[lower(j, l)], v[lower(j, l)], pivot);
      const auto good = hn::Gt(pivot, least);
      const V root = hn::IfThenElseZero(good, hn::Sqrt(hn::Max(pivot, hn::Zero(d))));
      const V inverse = hn::IfThenElseZero(good, hn::Div(hn::Set(d, 1.0), root));
      v.set(lower(j, j), root);
      for (int i = j + 1; i < n; ++i) {
        V sum = k[lower(i, j)];
        for (int l = 0; l < j; ++l) sum = hn::NegMulAdd(v[lower(i, l)], v[lower(j, l)], sum);
        v.set(lower(i, j), hn::Mul(sum, inverse));
      }
    }
  }
}

void AddTriangleGram(int n, const double* A, double* K) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View a{A + off};
    const Out k{K + off};
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = k[lower(i, j)];
        for (int l = 0; l <= j; ++l) sum = hn::MulAdd(a[lower(i, l)], a[lower(j, l)], sum);
        k.set(lower(i, j), sum);
      }
    }
  }
}

void AddGram(int n, int columns, const double* A, double* K) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View a{A + off};
    const Out k{K + off};
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = k[lower(i, j)];
        for (int l = 0; l < columns; ++l) {
          sum = hn::MulAdd(a[entry(i, l, columns)], a[entry(j, l, columns)], sum);
        }
        k.set(lower(i, j), sum);
      }
    }
  }
}

void TriangleProduct(int n, const double* A, const double* B, double* out) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View a{A + off}, b{B + off};
    const Out o{out + off};
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = hn::Zero(d);
        for (int l = j; l <= i; ++l) sum = hn::MulAdd(a[lower(i, l)], b[lower(l, j)], sum);
        o.set(lower(i, j), sum);
      }
    }
  }
}

/// W = V2 C^-1 (lower triangles), then X = V1 (W N)^T and K1 += K2 + X + X^T.
void MergeTail(int n, const double* normals, const double* C, const double* V1, const double* V2,
               const double* K2, double* K1, double* W, double* Y) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View z{normals + off}, c{C + off}, v1{V1 + off}, v2{V2 + off}, k2{K2 + off};
    const Out w{W + off}, y{Y + off}, k1{K1 + off};
    for (int i = 0; i < n; ++i) {
      for (int j = i; j >= 0; --j) {
        V sum = v2[lower(i, j)];
        for (int l = j + 1; l <= i; ++l) sum = hn::NegMulAdd(w[lower(i, l)], c[lower(l, j)], sum);
        w.set(lower(i, j), hn::Div(sum, c[lower(j, j)]));
      }
      for (int j = 0; j < n; ++j) {
        V sum = hn::Zero(d);
        for (int l = 0; l <= i; ++l) sum = hn::MulAdd(w[lower(i, l)], z[entry(l, j, n)], sum);
        y.set(entry(i, j, n), sum);
      }
    }
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = hn::Add(k1[lower(i, j)], k2[lower(i, j)]);
        for (int l = 0; l <= i; ++l) sum = hn::MulAdd(v1[lower(i, l)], y[entry(j, l, n)], sum);
        for (int l = 0; l <= j; ++l) sum = hn::MulAdd(v1[lower(j, l)], y[entry(i, l, n)], sum);
        k1.set(lower(i, j), sum);
      }
    }
  }
}

void Residual(int tokens, int columns, const double* X, int axes, const double* U, double* Y,
              double two_over_D, const double* active, double* mean, double* S, double* loss) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View x{X + off}, u{U + off};
    const Out y{Y + off}, w{mean + off}, s{S + off}, total{loss + off};
    V square = hn::Zero(d);
    for (int t = 0; t < tokens; ++t) {
      const V r = hn::Sub(hn::Set(d, t == 0 ? 1.0 : 0.0), w[at(t)]);
      square = hn::MulAdd(r, r, square);
      w.set(at(t), r);
      s.set(at(t), hn::Zero(d));
    }
    const V norm = hn::Sqrt(square);
    const V inverse = hn::IfThenElseZero(hn::Gt(norm, hn::Zero(d)), hn::Div(hn::Set(d, 1.0), norm));
    const V scale = hn::Mul(hn::Set(d, two_over_D), hn::Load(d, active + off));
    V weighted = hn::Zero(d);  // w^T G w
    for (int k = 0; k < columns; ++k) {
      V along = hn::Zero(d);
      for (int t = 0; t < tokens; ++t) along = hn::MulAdd(w[at(t)], x[entry(t, k, columns)], along);
      weighted = hn::MulAdd(along, along, weighted);
      for (int t = 0; t < tokens; ++t) {
        s.set(at(t), hn::MulAdd(along, x[entry(t, k, columns)], s[at(t)]));
      }
    }
    for (int t = 0; t < tokens; ++t) w.set(at(t), hn::Mul(w[at(t)], inverse));
    for (int k = 0; k < axes; ++k) {
      V along = hn::Zero(d);
      for (int t = 0; t < tokens; ++t) along = hn::MulAdd(w[at(t)], y[entry(t, k, axes)], along);
      const V shift = hn::Sub(u[at(k)], along), pull = hn::Mul(norm, u[at(k)]);
      weighted = hn::MulAdd(pull, pull, weighted);
      for (int t = 0; t < tokens; ++t) {
        const V moved = hn::MulAdd(w[at(t)], shift, y[entry(t, k, axes)]);
        y.set(entry(t, k, axes), moved);
        s.set(at(t), hn::MulAdd(pull, moved, s[at(t)]));
      }
    }
    for (int t = 0; t < tokens; ++t) s.set(at(t), hn::Mul(scale, s[at(t)]));
    const V value = hn::Mul(hn::Set(d, 0.5), hn::Mul(scale, weighted));
    total.set(0, hn::Add(total[0], value));
    total.set(1, hn::MulAdd(value, value, total[1]));
  }
}

void Project(int heads, int tokens, const double* w_hat, double* G) {
  for (int off = 0; off < kLanes; off += kStep) {
    const View w{w_hat + off};
    const Out g{G + off};
    for (int h = 0; h < heads; ++h) {
      V along = hn::Zero(d);
      for (int t = 0; t < tokens; ++t) along = hn::MulAdd(w[at(t)], g[entry(h, t, tokens)], along);
      for (int t = 0; t < tokens; ++t) {
        g.set(entry(h, t, tokens), hn::NegMulAdd(along, w[at(t)], g[entry(h, t, tokens)]));
      }
    }
  }
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {

HWY_EXPORT(Chi);
HWY_EXPORT(Cholesky);
HWY_EXPORT(AddTriangleGram);
HWY_EXPORT(AddGram);
HWY_EXPORT(TriangleProduct);
HWY_EXPORT(MergeTail);
HWY_EXPORT(Residual);
HWY_EXPORT(Project);

RandomStream chi_retries(const StreamKey& retry, const ChiNumber& which, int lane) {
  constexpr std::uint64_t kNumbers = 256, kStretch = 64;
  const std::uint64_t item = which.group * kNumbers + which.number % kNumbers;
  RandomStream stream(retry, item * kLanes + static_cast<std::uint64_t>(lane));
  for (std::uint64_t i = 0; i < which.number / kNumbers * kStretch; ++i) stream.bits();
  return stream;
}

void lane_chi(const StreamKey& retry, const ChiNumber& which, double dof, const double* normal,
              const double* uniform, double* out) {
  const int accepted = HWY_DYNAMIC_DISPATCH(Chi)(dof, normal, uniform, out);
  if (accepted == (1 << kLanes) - 1) return;
  for (int i = 0; i < kLanes; ++i) {
    if (accepted >> i & 1) continue;
    RandomStream stream = chi_retries(retry, which, i);
    out[i] = random_chi(stream, dof);
  }
}

void lane_cholesky(int n, const double* K, double* V) { HWY_DYNAMIC_DISPATCH(Cholesky)(n, K, V); }

void lane_add_gram(int n, const double* A, double* K) {
  HWY_DYNAMIC_DISPATCH(AddTriangleGram)(n, A, K);
}
void lane_add_gram(int n, int columns, const double* A, double* K) {
  HWY_DYNAMIC_DISPATCH(AddGram)(n, columns, A, K);
}

void lane_triangle_product(int n, const double* A, const double* B, double* out) {
  HWY_DYNAMIC_DISPATCH(TriangleProduct)(n, A, B, out);
}

void lane_merge(int n, const double* normals, const double* wishart, const double* K2, double* K1,
                double* scratch) {
  const std::size_t half = triangle(n) * kLanes;
  double *gram = scratch, *root = gram + half, *V1 = root + half, *V2 = V1 + half, *W = V2 + half,
         *Y = W + half;
  std::fill_n(gram, half, 0.0);
  lane_add_gram(n, n, normals, gram);
  lane_add_gram(n, wishart, gram);
  lane_cholesky(n, gram, root);
  lane_cholesky(n, K1, V1);
  lane_cholesky(n, K2, V2);
  HWY_DYNAMIC_DISPATCH(MergeTail)(n, normals, root, V1, V2, K2, K1, W, Y);
}

void lane_residual(int tokens, int columns, const double* x, int axes, const double* u, double* y,
                   double two_over_D, const double* active, double* mean, double* s, double* loss) {
  HWY_DYNAMIC_DISPATCH(Residual)
  (tokens, columns, x, axes, u, y, two_over_D, active, mean, s, loss);
}

void lane_project(int heads, int tokens, const double* w_hat, double* g) {
  HWY_DYNAMIC_DISPATCH(Project)(heads, tokens, w_hat, g);
}

}  // namespace headflow
#endif  // HWY_ONCE
