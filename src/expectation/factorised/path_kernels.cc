#include "expectation/factorised/path_kernels.h"

#include "expectation/factorised/weight_laws.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "expectation/factorised/path_kernels.cc"
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
constexpr D d;

/// Scores of one vector of nodes, `i` from the start of a row of groups.
struct Row {
  const PathScores& s;
  std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(s.groups) * kLanes;
  V sign = hn::Set(d, s.sign);

  HWY_INLINE V value(int h, std::ptrdiff_t i) const {
    return hn::MulAdd(sign, hn::Load(d, s.chi + h * stride + i), hn::Set(d, s.shift[h]));
  }
  HWY_INLINE V tangent(int h, std::ptrdiff_t i) const {
    return hn::MulAdd(sign, hn::Load(d, s.tangent + h * stride + i),
                      hn::Set(d, s.shift_tangent[h]));
  }
  HWY_INLINE V power(int h, std::ptrdiff_t i) const {
    return hn::Load(d, s.power + h * stride + i);
  }
};

void Powers(int groups, const double* chi, double* rise, double* fall) {
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(groups) * kLanes; i += N) {
    V up, down;
    simd::ExpPair(d, hn::Load(d, chi + i), up, down);
    hn::Store(up, d, rise + i);
    hn::Store(down, d, fall + i);
  }
}

void Weights(const PathScores& scores, double* t, double* t_tangent) {
  const Row row{scores};
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (std::ptrdiff_t i = 0; i < row.stride; i += N) {
    V top = hn::Zero(d), sum = hn::Zero(d), slope = hn::Zero(d);
    if (!scores.power) {
      top = row.value(0, i);
      for (int h = 1; h < scores.heads; ++h) top = hn::Max(top, row.value(h, i));
    }
    for (int h = 0; h < scores.heads; ++h) {
      const V e = scores.power ? hn::Mul(hn::Set(d, scores.factor[h]), row.power(h, i))
                               : simd::Exp(d, hn::Sub(row.value(h, i), top));
      sum = hn::Add(sum, e);
      if (t_tangent) slope = hn::MulAdd(e, row.tangent(h, i), slope);
    }
    hn::Store(hn::Add(top, simd::Log(d, sum)), d, t + i);
    if (t_tangent) hn::Store(hn::Div(slope, sum), d, t_tangent + i);
  }
}

/// The weights of the cells that one number touches, kTouched of 8, or their derivatives.
struct Touched {
  V part[8];
};

HWY_INLINE void Touch(const SplinePolynomials& spline, double f, Touched& weight, Touched* slope) {
  const int N = static_cast<int>(hn::Lanes(d));
  const V x = hn::Set(d, f);
  for (int part = 0; part * N < 8; ++part) {
    V w = hn::LoadU(d, &spline[kTouched - 1][part * N]), s = hn::Zero(d);
    for (int order = kTouched - 2; order >= 0; --order) {
      if (slope) s = hn::MulAdd(s, x, w);
      w = hn::MulAdd(w, x, hn::LoadU(d, &spline[order][part * N]));
    }
    weight.part[part] = w;
    if (slope) slope->part[part] = s;
  }
}

/// Neighbours in turn into other copies: most of them meet in the same cells, and would wait for
/// each other's sums.
void Spread(int groups, const double* t, const double* t_tangent, std::int64_t first,
            std::ptrdiff_t copy, double* mass, double* mass_tangent) {
  const SplinePolynomials& spline = spline_polynomials();
  const int N = static_cast<int>(hn::Lanes(d));
  Touched weight, slope;
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(groups) * kLanes; ++i) {
    const double x = t[i] * (1 / kCell), cell = std::floor(x);
    const std::ptrdiff_t to =
        static_cast<std::ptrdiff_t>(cell) - 2 - first + i % kPathCopies * copy;
    Touch(spline, x - cell, weight, t_tangent ? &slope : nullptr);
    for (int part = 0; part * N < 8; ++part) {
      double* m = mass + to + part * N;
      hn::StoreU(hn::Add(hn::LoadU(d, m), weight.part[part]), d, m);
      if (!t_tangent) continue;
      double* dm = mass_tangent + to + part * N;
      const V step = hn::Set(d, t_tangent[i] * (1 / kCell));
      hn::StoreU(hn::MulAdd(step, slope.part[part], hn::LoadU(d, dm)), d, dm);
    }
  }
}

void SlopesOf(int groups, const double* t, const double* t_tangent, std::int64_t first,
              const double* coefficient, const double* coefficient_tangent, double scale,
              double* bar, double* bar_tangent) {
  const hn::RebindToSigned<D> di;
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(groups) * kLanes; i += N) {
    const V x = hn::Mul(hn::Load(d, t + i), hn::Set(d, 1 / kCell)), cell = hn::Floor(x);
    const V f = hn::Sub(x, cell);
    const auto index = hn::ShiftLeft<3>(hn::Sub(hn::ConvertTo(di, cell), hn::Set(di, first)));
    V y = hn::GatherIndex(d, coefficient + (kTouched - 2), index), slope = hn::Zero(d);
    for (int order = kTouched - 3; order >= 0; --order) {
      if (t_tangent) slope = hn::MulAdd(slope, f, y);
      y = hn::MulAdd(y, f, hn::GatherIndex(d, coefficient + order, index));
    }
    const V by = hn::Set(d, scale);
    hn::Store(hn::Mul(by, y), d, bar + i);
    if (!t_tangent) continue;
    V moved = hn::GatherIndex(d, coefficient_tangent + (kTouched - 2), index);
    for (int order = kTouched - 3; order >= 0; --order) {
      moved = hn::MulAdd(moved, f, hn::GatherIndex(d, coefficient_tangent + order, index));
    }
    const V step = hn::Mul(hn::Load(d, t_tangent + i), hn::Set(d, 1 / kCell));
    hn::Store(hn::Mul(by, hn::MulAdd(slope, step, moved)), d, bar_tangent + i);
  }
}

void Shares(const PathScores& scores, const double* t, const double* t_tangent, const double* bar,
            const double* bar_tangent, double* g, double* sum) {
  const Row row{scores};
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  HWY_ALIGN double inverse[kPathChunk * kLanes];  // e^-t
  for (std::ptrdiff_t i = 0; scores.power && i < row.stride; i += N) {
    hn::Store(simd::Exp(d, hn::Neg(hn::Load(d, t + i))), d, inverse + i);
  }
  for (int h = 0; h < scores.heads; ++h) {
    const V factor = hn::Set(d, scores.power ? scores.factor[h] : 1.0);
    for (std::ptrdiff_t lane = 0; lane < kLanes; lane += N) {
      V total = hn::Load(d, sum + h * kLanes + lane);
      for (std::ptrdiff_t i = lane; i < row.stride; i += kLanes) {
        const V p = scores.power
                        ? hn::Mul(hn::Mul(factor, row.power(h, i)), hn::Load(d, inverse + i))
                        : simd::Exp(d, hn::Sub(row.value(h, i), hn::Load(d, t + i)));
        V out = hn::Load(d, bar + i);
        if (t_tangent) {
          const V moved = hn::Sub(row.tangent(h, i), hn::Load(d, t_tangent + i));
          out = hn::MulAdd(out, moved, hn::Load(d, bar_tangent + i));
        }
        out = hn::Mul(p, out);
        total = hn::Add(total, out);
        double* to = g + h * row.stride + i;
        hn::Store(hn::MulAdd(row.sign, out, hn::Load(d, to)), d, to);
      }
      hn::Store(total, d, sum + h * kLanes + lane);
    }
  }
}

}  // namespace
}  // namespace headflow::factorised::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow::factorised {

HWY_EXPORT(Powers);
HWY_EXPORT(Weights);
HWY_EXPORT(Spread);
HWY_EXPORT(SlopesOf);
HWY_EXPORT(Shares);

void path_powers(int groups, const double* chi, double* rise, double* fall) {
  HWY_DYNAMIC_DISPATCH(Powers)(groups, chi, rise, fall);
}
void path_weights(const PathScores& scores, double* t, double* t_tangent) {
  HWY_DYNAMIC_DISPATCH(Weights)(scores, t, t_tangent);
}
void path_spread(int groups, const double* t, const double* t_tangent, std::int64_t first,
                 std::ptrdiff_t copy, double* mass, double* mass_tangent) {
  HWY_DYNAMIC_DISPATCH(Spread)(groups, t, t_tangent, first, copy, mass, mass_tangent);
}
void path_slopes(int groups, const double* t, const double* t_tangent, std::int64_t first,
                 const double* coefficient, const double* coefficient_tangent, double scale,
                 double* bar, double* bar_tangent) {
  HWY_DYNAMIC_DISPATCH(SlopesOf)
  (groups, t, t_tangent, first, coefficient, coefficient_tangent, scale, bar, bar_tangent);
}
void path_shares(const PathScores& scores, const double* t, const double* t_tangent,
                 const double* bar, const double* bar_tangent, double* g, double* sum) {
  HWY_DYNAMIC_DISPATCH(Shares)(scores, t, t_tangent, bar, bar_tangent, g, sum);
}

}  // namespace headflow::factorised
#endif
