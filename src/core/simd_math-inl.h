// Elementary functions on vectors of double, for Highway's per-target inclusion.
// Accuracies are stated here and tested in simd_math_test.cc.

#if defined(HEADFLOW_CORE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADFLOW_CORE_SIMD_MATH_INL_H_
#undef HEADFLOW_CORE_SIMD_MATH_INL_H_
#else
#define HEADFLOW_CORE_SIMD_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// 2^f for |f| <= 1/2 by a Chebyshev fit, relative error 3e-16. Horner: callers have many
/// independent exponentials in flight, so fewer operations beat a shorter chain.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Fraction(D d, V f) {
  V p = hn::Set(d, 0x1.e6063f7217bc6p-28);
  HWY_UNROLL(10)
  for (const double c : {0x1.b675bca4eeebbp-24, 0x1.62bfd47773353p-20, 0x1.ffcb54062e698p-17,
                         0x1.430913096fd9fp-13, 0x1.5d87fe9d7a584p-10, 0x1.3b2ab6fba1ddap-7,
                         0x1.c6b08d703ce49p-5, 0x1.ebfbdff82c598p-3, 0x1.62e42fefa3a19p-1, 1.0}) {
    p = hn::MulAdd(p, f, hn::Set(d, c));
  }
  return p;
}

/// p 2^k, where the low bits of `shifted` hold k: they are added to the exponent.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ScaleByShifted(D d, V p, V shifted) {
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

/// 2^x for |x| <= 1000, to 2 ulp. The reduction is exact and takes no multiplication.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V x) {
  const V shift = hn::Set(d, 0x1.8p52);
  const V shifted = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(shifted, shift));
  return ScaleByShifted(d, Exp2Fraction(d, f), shifted);
}

/// e^x for x <= 709, to 3 ulp; 0 below -708 (no subnormals).
/// 2^k 2^f with k = round(x log2 e): f is a fused product, so large |x| lose nothing.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const V shift = hn::Set(d, 0x1.8p52);
  const V log2e_high = hn::Set(d, 0x1.71547652b82fep+0);
  const V log2e_low = hn::Set(d, 0x1.777d0ffda0d24p-56);
  const V shifted = hn::MulAdd(x, log2e_high, shift);
  const V k = hn::Sub(shifted, shift);
  const V f = hn::MulAdd(x, log2e_low, hn::MulSub(x, log2e_high, k));
  const V scaled = ScaleByShifted(d, Exp2Fraction(d, f), shifted);
  return hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -708.0)), scaled);
}

/// Natural logarithm of a positive normal number (Highway's, 4 ulp).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  return hn::Log(d, x);
}

/// sin(2 pi t) and cos(2 pi t) for t in [0, 1], absolute error 3e-16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SinCosTurn(D d, V t, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  const V shift = hn::Set(d, 0x1.8p52);
  const V shifted = hn::MulAdd(t, hn::Set(d, 4.0), shift);
  const V quarter = hn::Sub(shifted, shift);
  const V r = hn::NegMulAdd(quarter, hn::Set(d, 0.25), t);  // in [-1/8, 1/8], exact
  const V y = hn::Mul(r, r);

  V s = hn::Set(d, 3.7808689593022957);
  for (const double c : {-15.093804209987114, 42.058685020160894, -76.70585970427454,
                         81.60524927594804, -41.341702240399634, 6.283185307179586}) {
    s = hn::MulAdd(s, y, hn::Set(d, c));
  }
  s = hn::Mul(s, r);
  V c = hn::Set(d, -1.6968494702918826);
  for (const double a : {7.903091687751697, -26.426250908622137, 60.244641328867296,
                         -85.45681720652271, 64.93939402266795, -19.739208802178716, 1.0}) {
    c = hn::MulAdd(c, y, hn::Set(d, a));
  }

  // Quarter q = 0..4: (sin, cos) = (s, c), (c, -s), (-s, -c), (-c, s), (s, c).
  const auto q = hn::BitCast(di, shifted);
  const auto one = hn::Set(di, 1), two = hn::Set(di, 2);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(q, one), one));
  const V sine_sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(q, two)));
  const V cosine_sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(hn::Add(q, one), two)));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

}  // namespace headflow::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif
