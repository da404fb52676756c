#include "expectation/factorised/joint_kernels.h"

#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "expectation/factorised/joint_kernels.cc"
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
constexpr D d{};
// Eight running sums whatever the width of a vector: the same bits everywhere.
constexpr int kStep = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;
constexpr int kParts = 8 / kStep;
constexpr double kMost = 700.0;
constexpr double kLast = 600.0;

/// A vector of numbers.
struct Plain {
  V x;
  static HWY_INLINE Plain Load(Numbers n, std::ptrdiff_t i) { return {hn::LoadU(d, n.value + i)}; }
  static HWY_INLINE Plain All(Numbers n, std::ptrdiff_t i) { return {hn::Set(d, n.value[i])}; }
  static HWY_INLINE Plain Constant(V c) { return {c}; }
  HWY_INLINE void Store(Numbers n, std::ptrdiff_t i) const { hn::StoreU(x, d, n.value + i); }
};
HWY_INLINE Plain Add(Plain a, Plain b) { return {hn::Add(a.x, b.x)}; }
HWY_INLINE Plain Mul(Plain a, Plain b) { return {hn::Mul(a.x, b.x)}; }
HWY_INLINE Plain MulAdd(Plain a, Plain b, Plain c) { return {hn::MulAdd(a.x, b.x, c.x)}; }
HWY_INLINE Plain Scale(V c, Plain a) { return {hn::Mul(c, a.x)}; }
HWY_INLINE Plain ScaleAdd(V c, Plain a, Plain b) { return {hn::MulAdd(c, a.x, b.x)}; }
HWY_INLINE Plain Inverse(Plain a) { return {hn::Div(hn::Set(d, 1.0), a.x)}; }
HWY_INLINE Plain ExpClamped(Plain a) {
  return {simd::Exp(d, hn::Clamp(a.x, hn::Set(d, -kMost), hn::Set(d, kMost)))};
}
/// y where e^(-y) is not yet negligible, kLast beyond.
HWY_INLINE Plain AtMost(Plain y) { return {hn::Min(y.x, hn::Set(d, kLast))}; }
/// e^(-y) for 0 <= y <= kLast; its relative error, y 2^(-53), is that of a rounded y.
HWY_INLINE Plain ExpMinus(Plain y) {
  return {simd::Exp2(d, hn::Mul(y.x, hn::Set(d, -std::numbers::log2e)))};
}

/// A vector of numbers with tangents.
struct Tangent {
  V x, t;
  static HWY_INLINE Tangent Load(Numbers n, std::ptrdiff_t i) {
    return {hn::LoadU(d, n.value + i), hn::LoadU(d, n.tangent + i)};
  }
  static HWY_INLINE Tangent All(Numbers n, std::ptrdiff_t i) {
    return {hn::Set(d, n.value[i]), hn::Set(d, n.tangent[i])};
  }
  static HWY_INLINE Tangent Constant(V c) { return {c, hn::Zero(d)}; }
  HWY_INLINE void Store(Numbers n, std::ptrdiff_t i) const {
    hn::StoreU(x, d, n.value + i);
    hn::StoreU(t, d, n.tangent + i);
  }
};
HWY_INLINE Tangent Add(Tangent a, Tangent b) { return {hn::Add(a.x, b.x), hn::Add(a.t, b.t)}; }
HWY_INLINE Tangent Mul(Tangent a, Tangent b) {
  return {hn::Mul(a.x, b.x), hn::MulAdd(a.x, b.t, hn::Mul(a.t, b.x))};
}
HWY_INLINE Tangent MulAdd(Tangent a, Tangent b, Tangent c) {
  return {hn::MulAdd(a.x, b.x, c.x), hn::MulAdd(a.x, b.t, hn::MulAdd(a.t, b.x, c.t))};
}
HWY_INLINE Tangent Scale(V c, Tangent a) { return {hn::Mul(c, a.x), hn::Mul(c, a.t)}; }
HWY_INLINE Tangent ScaleAdd(V c, Tangent a, Tangent b) {
  return {hn::MulAdd(c, a.x, b.x), hn::MulAdd(c, a.t, b.t)};
}
HWY_INLINE Tangent Inverse(Tangent a) {
  const V x = hn::Div(hn::Set(d, 1.0), a.x);
  return {x, hn::Neg(hn::Mul(hn::Mul(x, x), a.t))};
}
HWY_INLINE Tangent ExpClamped(Tangent a) {
  const V x = ExpClamped(Plain{a.x}).x;
  return {x, hn::Mul(x, a.t)};
}
HWY_INLINE Tangent AtMost(Tangent y) {
  return {AtMost(Plain{y.x}).x, hn::IfThenElseZero(hn::Lt(y.x, hn::Set(d, kLast)), y.t)};
}
HWY_INLINE Tangent ExpMinus(Tangent y) {
  const V x = ExpMinus(Plain{y.x}).x;
  return {x, hn::Neg(hn::Mul(x, y.t))};
}
HWY_INLINE Plain Log(Plain a) { return {simd::Log(d, a.x)}; }
HWY_INLINE Tangent Log(Tangent a) { return {simd::Log(d, a.x), hn::Div(a.t, a.x)}; }
HWY_INLINE Plain Shift(V c, Plain a) { return {hn::Add(c, a.x)}; }
HWY_INLINE Tangent Shift(V c, Tangent a) { return {hn::Add(c, a.x), a.t}; }
HWY_INLINE Plain Difference(Plain a, Plain b) { return {hn::Sub(a.x, b.x)}; }
HWY_INLINE Tangent Difference(Tangent a, Tangent b) {
  return {hn::Sub(a.x, b.x), hn::Sub(a.t, b.t)};
}

/// y = scale w, or from the logarithms of both.
template <bool kLogs, class T>
HWY_INLINE T Weight(V scale, T w) {
  if constexpr (kLogs) return AtMost(ExpClamped(Shift(scale, w)));
  return AtMost(Scale(scale, w));
}

template <bool kLogs, class T>
void Exponentials(const NodeChunk& nodes, Numbers A, Numbers shift, Numbers e) {
  for (int h = 0; h < nodes.heads; ++h) {
    const T start = T::All(shift, h);
    for (int i = 0; i < nodes.count; i += kStep) {
      T sum = start;
      for (int j = 0; j < nodes.dimensions; ++j) {
        sum = ScaleAdd(hn::LoadU(d, nodes.zeta + j * nodes.stride + i),
                       T::All(A, h * nodes.dimensions + j), sum);
      }
      if constexpr (!kLogs) sum = ExpClamped(sum);
      sum.Store(e, h * nodes.count + i);
    }
  }
}

/// w, or log w = largest + log sum_h e^(term_h - largest).
template <bool kLogs, class T>
HWY_INLINE T Denominator(const NodeChunk& nodes, Numbers factor, Numbers e, int i) {
  if constexpr (kLogs) {
    const auto term = [&](int h) HWY_ATTR {
      return Add(T::All(factor, h), T::Load(e, h * nodes.count + i));
    };
    V largest = term(0).x;
    for (int h = 1; h < nodes.heads; ++h) largest = hn::Max(largest, term(h).x);
    T sum = ExpClamped(Shift(hn::Neg(largest), term(0)));
    for (int h = 1; h < nodes.heads; ++h) {
      sum = Add(sum, ExpClamped(Shift(hn::Neg(largest), term(h))));
    }
    return Shift(largest, Log(sum));
  }
  T sum = Mul(T::All(factor, 0), T::Load(e, i));
  for (int h = 1; h < nodes.heads; ++h) {
    sum = MulAdd(T::All(factor, h), T::Load(e, h * nodes.count + i), sum);
  }
  return sum;
}

template <bool kLogs, class T>
void Moments(const NodeChunk& nodes, Numbers factor, Numbers e, int points, const double* scale,
             Numbers w, Numbers sums) {
  for (int i = 0; i < nodes.count; i += kStep) {
    Denominator<kLogs, T>(nodes, factor, e, i).Store(w, i);
  }
  for (int u = 0; u < points; ++u) {
    T sum[3][kParts];
    for (auto& row : sum) {
      for (T& x : row) x = T::Constant(hn::Zero(d));
    }
    const V s = hn::Set(d, scale[u]);
    for (int i = 0; i < nodes.count; i += 8) {
      HWY_UNROLL(kParts) for (int p = 0; p < kParts; ++p) {
        const T y = Weight<kLogs>(s, T::Load(w, i + p * kStep));
        const T f = Scale(hn::LoadU(d, nodes.weight + i + p * kStep), ExpMinus(y));
        const T yf = Mul(y, f);
        sum[0][p] = Add(sum[0][p], f);
        sum[1][p] = Add(sum[1][p], yf);
        sum[2][p] = MulAdd(y, yf, sum[2][p]);
      }
    }
    for (int k = 0; k < 3; ++k) {
      double value[8], tangent[8] = {};
      const Numbers lanes{value, sums.tangent ? tangent : nullptr};
      for (int p = 0; p < kParts; ++p) sum[k][p].Store(lanes, p * kStep);
      for (int j = 0; j < 8; ++j) {
        sums.value[k * points + u] += value[j];
        if (sums.tangent) sums.tangent[k * points + u] += tangent[j];
      }
    }
  }
}

/// Adds sum_i x_i y_k,i to sums[k] for kCount neighbouring rows k of y; a row is `count` numbers.
template <class T, int kCount>
HWY_INLINE void AddProducts(int count, Numbers x, Numbers y, Numbers sums) {
  for (int part = 0; part < kParts; ++part) {
    const int lane = part * kStep;
    T sum[kCount];
    HWY_UNROLL(4) for (int k = 0; k < kCount; ++k) sum[k] = T::Load(sums, k * 8 + lane);
    for (int i = lane; i < count; i += 8) {
      const T at = T::Load(x, i);
      HWY_UNROLL(4) for (int k = 0; k < kCount; ++k) {
        sum[k] = MulAdd(at, T::Load(y, k * count + i), sum[k]);
      }
    }
    HWY_UNROLL(4) for (int k = 0; k < kCount; ++k) sum[k].Store(sums, k * 8 + lane);
  }
}

template <class T>
HWY_INLINE void AddRows(int rows, int count, Numbers x, Numbers y, Numbers sums) {
  int k = 0;
  for (; k + 4 <= rows; k += 4) AddProducts<T, 4>(count, x, y + k * count, sums + k * 8);
  y = y + k * count;
  sums = sums + k * 8;
  switch (rows - k) {
    case 1: AddProducts<T, 1>(count, x, y, sums); break;
    case 2: AddProducts<T, 2>(count, x, y, sums); break;
    case 3: AddProducts<T, 3>(count, x, y, sums); break;
    default: break;
  }
}

/// Phi' and Phi'' - Phi' times their weights, and the shares p, of kVectors vectors of nodes from
/// i.
template <bool kLogs, class T, int kVectors>
HWY_INLINE void NodeAdjoints(const NodeChunk& nodes, int i, Numbers factor, Numbers e, int points,
                             const double* scale, Numbers coefficients, Numbers firsts,
                             Numbers seconds, Numbers p) {
  T w[kVectors], first[kVectors], second[kVectors];
  HWY_UNROLL(2) for (int k = 0; k < kVectors; ++k) {
    w[k] = Denominator<kLogs, T>(nodes, factor, e, i + k * kStep);
    first[k] = second[k] = T::Constant(hn::Zero(d));
  }
  for (int u = 0; u < points; ++u) {
    const V s = hn::Set(d, scale[u]);
    const auto c = [&](int k) { return T::All(coefficients, k * points + u); };
    const T c0 = c(0), c1 = c(1), c2 = c(2), c3 = c(3), c4 = c(4), c5 = c(5);
    HWY_UNROLL(2) for (int k = 0; k < kVectors; ++k) {
      const T y = Weight<kLogs>(s, w[k]);
      const T yf = Mul(y, ExpMinus(y));
      first[k] = MulAdd(yf, MulAdd(y, MulAdd(y, c2, c1), c0), first[k]);
      second[k] = MulAdd(Mul(y, yf), MulAdd(y, MulAdd(y, c5, c4), c3), second[k]);
    }
  }
  HWY_UNROLL(2) for (int k = 0; k < kVectors; ++k) {
    const int at = i + k * kStep;
    const V weight = hn::LoadU(d, nodes.weight + at);
    Scale(weight, first[k]).Store(firsts, at);
    Scale(weight, second[k]).Store(seconds, at);
    if constexpr (kLogs) {
      for (int h = 0; h < nodes.heads; ++h) {
        const int entry = h * nodes.count + at;
        const T term = Add(T::All(factor, h), T::Load(e, entry));
        ExpClamped(Difference(term, w[k])).Store(p, entry);
      }
      continue;
    }
    const T inverse = Inverse(w[k]);
    for (int h = 0; h < nodes.heads; ++h) {
      const int entry = h * nodes.count + at;
      Mul(Mul(T::All(factor, h), T::Load(e, entry)), inverse).Store(p, entry);
    }
  }
}

template <bool kLogs, class T>
void Adjoints(const NodeChunk& nodes, Numbers factor, Numbers e, int points, const double* scale,
              Numbers coefficients, Numbers scratch, Numbers mean, Numbers cross) {
  const int H = nodes.heads, n = nodes.count;
  const Numbers firsts = scratch, seconds = firsts + n, scaled = seconds + n, p = scaled + n;
  int i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    NodeAdjoints<kLogs, T, 2>(nodes, i, factor, e, points, scale, coefficients, firsts, seconds, p);
  }
  if (i < n) {
    NodeAdjoints<kLogs, T, 1>(nodes, i, factor, e, points, scale, coefficients, firsts, seconds, p);
  }
  AddRows<T>(H, n, firsts, p, mean);
  for (int h = 0; h < H; ++h) {
    for (i = 0; i < n; i += kStep) {
      Mul(T::Load(seconds, i), T::Load(p, h * n + i)).Store(scaled, i);
    }
    AddRows<T>(h + 1, n, scaled, p, cross + h * (h + 1) / 2 * 8);
  }
}

// The four cases: with logarithms or without, with tangents or without.
void AnyExponentials(Given given, const NodeChunk& n, Numbers A, Numbers shift, Numbers e) {
  const bool logs = given == Given::logs;
  (e.tangent ? (logs ? Exponentials<true, Tangent> : Exponentials<false, Tangent>)
             : (logs ? Exponentials<true, Plain> : Exponentials<false, Plain>))(n, A, shift, e);
}
void AnyMoments(Given given, const NodeChunk& n, Numbers factor, Numbers e, int points,
                const double* scale, Numbers w, Numbers sums) {
  const bool logs = given == Given::logs;
  (e.tangent ? (logs ? Moments<true, Tangent> : Moments<false, Tangent>)
             : (logs ? Moments<true, Plain> : Moments<false, Plain>))(n, factor, e, points, scale,
                                                                      w, sums);
}
void AnyAdjoints(Given given, const NodeChunk& n, Numbers factor, Numbers e, int points,
                 const double* scale, Numbers coefficients, Numbers scratch, Numbers mean,
                 Numbers cross) {
  const bool logs = given == Given::logs;
  (e.tangent ? (logs ? Adjoints<true, Tangent> : Adjoints<false, Tangent>)
             : (logs ? Adjoints<true, Plain> : Adjoints<false, Plain>))(
      n, factor, e, points, scale, coefficients, scratch, mean, cross);
}

}  // namespace
}  // namespace headflow::factorised::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow::factorised {

HWY_EXPORT(AnyExponentials);
HWY_EXPORT(AnyMoments);
HWY_EXPORT(AnyAdjoints);

void node_exponentials(Given given, const NodeChunk& nodes, Numbers A, Numbers shift, Numbers e) {
  HWY_DYNAMIC_DISPATCH(AnyExponentials)(given, nodes, A, shift, e);
}
void node_moments(Given given, const NodeChunk& nodes, Numbers factor, Numbers e, int points,
                  const double* scale, Numbers w, Numbers sums) {
  HWY_DYNAMIC_DISPATCH(AnyMoments)(given, nodes, factor, e, points, scale, w, sums);
}
void node_adjoints(Given given, const NodeChunk& nodes, Numbers factor, Numbers e, int points,
                   const double* scale, Numbers coefficients, Numbers scratch, Numbers mean,
                   Numbers cross) {
  HWY_DYNAMIC_DISPATCH(AnyAdjoints)
  (given, nodes, factor, e, points, scale, coefficients, scratch, mean, cross);
}

}  // namespace headflow::factorised
#endif
