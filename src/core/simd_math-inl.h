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

/// e^x and e^-x for |x| <= 700, to 4 ulp each, for little more than one of them: with 2^f = a(f^2)
/// + f b(f^2) the other one is a - f b.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ExpPair(D d, V x, V& rise, V& fall) {
  const V shift = hn::Set(d, 0x1.8p52);
  const V log2e_high = hn::Set(d, 0x1.71547652b82fep+0);
  const V log2e_low = hn::Set(d, 0x1.777d0ffda0d24p-56);
  const V shifted = hn::MulAdd(x, log2e_high, shift);
  const V k = hn::Sub(shifted, shift);
  const V f = hn::MulAdd(x, log2e_low, hn::MulSub(x, log2e_high, k));
  const V y = hn::Mul(f, f);
  V a = hn::Set(d, 0x1.e6063f7217bc6p-28), b = hn::Set(d, 0x1.b675bca4eeebbp-24);
  HWY_UNROLL(5)
  for (const double c : {0x1.62bfd47773353p-20, 0x1.430913096fd9fp-13, 0x1.3b2ab6fba1ddap-7,
                         0x1.ebfbdff82c598p-3, 1.0}) {
    a = hn::MulAdd(a, y, hn::Set(d, c));
  }
  HWY_UNROLL(4)
  for (const double c :
       {0x1.ffcb54062e698p-17, 0x1.5d87fe9d7a584p-10, 0x1.c6b08d703ce49p-5, 0x1.62e42fefa3a19p-1}) {
    b = hn::MulAdd(b, y, hn::Set(d, c));
  }
  rise = ScaleByShifted(d, hn::MulAdd(b, f, a), shifted);
  fall = ScaleByShifted(d, hn::NegMulAdd(b, f, a), hn::Sub(shift, k));
}

/// Natural logarithm of a positive normal number (Highway's without its care for others, 4 ulp).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  return hn::impl::Log<D, V, false>(d, x);
}

/// P(x) / Q(x) for polynomials given from the highest coefficient down.
template <class D, class V = hn::Vec<D>, std::size_t N>
HWY_INLINE V Rational(D d, V x, const double (&P)[N], const double (&Q)[N]) {
  V p = hn::Set(d, P[0]), q = hn::Set(d, Q[0]);
  HWY_UNROLL(8)
  for (std::size_t i = 1; i < N; ++i) {
    p = hn::MulAdd(p, x, hn::Set(d, P[i]));
    q = hn::MulAdd(q, x, hn::Set(d, Q[i]));
  }
  return hn::Div(p, q);
}

/// The quantile of N(0, 1) for u in [2^-53, 1 - 2^-53], relative error 1e-15 where 1 - u is exact.
/// Wichura's AS 241, PPND16 (Applied Statistics 37, 1988): one rational function in the middle,
/// 0.075 <= u <= 0.925, and one each for the tails above and below e^-25.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalQuantile(D d, V u) {
  constexpr double kMiddleP[] = {
      2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
      13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080};
  constexpr double kMiddleQ[] = {
      5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
      5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0};
  constexpr double kTailP[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                               2.41780725177450611770e-1, 1.27045825245236838258,
                               3.64784832476320460504,    5.76949722146069140550,
                               4.63033784615654529590,    1.42343711074968357734};
  constexpr double kTailQ[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                               1.51986665636164571966e-2, 1.48103976427480074590e-1,
                               6.89767334985100004550e-1, 1.67638483018380384940,
                               2.05319162663775882187,    1.0};
  constexpr double kFarP[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                              1.24266094738807843860e-3, 2.65321895265761230930e-2,
                              2.96560571828504891230e-1, 1.78482653991729133580,
                              5.46378491116411436990,    6.65790464350110377720};
  constexpr double kFarQ[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                              1.84631831751005468180e-5,  7.86869131145613259100e-4,
                              1.48753612908506148525e-2,  1.36929880922735805310e-1,
                              5.99832206555887937690e-1,  1.0};
  const V q = hn::Sub(u, hn::Set(d, 0.5));
  const V r = hn::NegMulAdd(q, q, hn::Set(d, 0.180625));
  V out = hn::Mul(q, Rational(d, r, kMiddleP, kMiddleQ));
  const auto tail = hn::Lt(r, hn::Zero(d));  // |q| > 0.425
  if (hn::AllFalse(d, tail)) return out;
  const V t = hn::Sqrt(hn::Neg(simd::Log(d, hn::Min(u, hn::Sub(hn::Set(d, 1.0), u)))));
  V size = Rational(d, hn::Sub(t, hn::Set(d, 1.6)), kTailP, kTailQ);
  const auto far = hn::Gt(t, hn::Set(d, 5.0));
  if (!hn::AllFalse(d, far)) {
    size = hn::IfThenElse(far, Rational(d, hn::Sub(t, hn::Set(d, 5.0)), kFarP, kFarQ), size);
  }
  return hn::IfThenElse(tail, hn::CopySign(size, q), out);
}

}  // namespace headflow::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif
