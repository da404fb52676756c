#include "expectation/sobol.h"

#include "core/index.h"
#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "expectation/sobol.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "core/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<double, kLanes>;
using DU = hn::RebindToUnsigned<DF>;

/// `digits` holds `count` records of `stride` numbers: the digits of the first 8 points, then
/// what each bit of the group's number adds.
template <bool kNormal>
HWY_INLINE void Fill(const std::uint64_t* digits, int stride, std::uint64_t group, int count,
                     double* out) {
  const DF df;
  const DU du;
  int bits[64];
  int set = 0;
  for (int bit = 0; group >> bit != 0; ++bit) {
    if (group >> bit & 1) bits[set++] = kLanes + bit;
  }
  for (int j = 0; j < count; ++j, digits += stride) {
    std::uint64_t common = 0;
    for (int k = 0; k < set; ++k) common ^= digits[bits[k]];
    for (int off = 0; off < kLanes; off += static_cast<int>(hn::Lanes(df))) {
      const auto all = hn::Xor(hn::LoadU(du, digits + off), hn::Set(du, common));
      const auto one_to_two = hn::Or(hn::ShiftRight<12>(all), hn::Set(du, 0x3FF0000000000000u));
      // Exact: an odd multiple of 2^-53.
      const auto u = hn::Sub(hn::BitCast(df, one_to_two), hn::Set(df, 1.0 - 0x1p-53));
      double* to = out + static_cast<std::ptrdiff_t>(j) * kLanes + off;
      if constexpr (kNormal) {
        hn::StoreU(simd::NormalQuantile(df, u), df, to);
      } else {
        hn::StoreU(u, df, to);
      }
    }
  }
}

void SobolUniforms(const std::uint64_t* digits, int stride, std::uint64_t group, int count,
                   double* out) {
  Fill<false>(digits, stride, group, count, out);
}
void SobolNormals(const std::uint64_t* digits, int stride, std::uint64_t group, int count,
                  double* out) {
  Fill<true>(digits, stride, group, count, out);
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <bit>
#include <boost/random/sobol.hpp>

namespace headflow {

HWY_EXPORT(SobolUniforms);
HWY_EXPORT(SobolNormals);

namespace {
constexpr int kGroupBits = std::countr_zero(static_cast<unsigned>(kLanes));
}

ScrambledSobol::ScrambledSobol(int dimensions, int log2_points, int randomisations)
    : dimensions_(dimensions),
      columns_(log2_points),
      randomisations_(randomisations),
      directions_(at(dimensions) * at(log2_points)) {
  const auto record = at(kLanes + columns_ - kGroupBits);
  scrambled_.resize(at(randomisations) * at(dimensions) * record);
  if (dimensions == 0) return;
  boost::random::sobol engine(at(dimensions));
  for (int k = 0; k < columns_; ++k) {
    // Boost counts from 1 and in Gray code: the code of 2^(k+1) - 1 is 2^k.
    engine.seed((std::uint64_t{2} << k) - 2);
    for (int j = 0; j < dimensions; ++j) {
      directions_[at(j) * at(columns_) + at(k)] = engine();
    }
  }
}

const std::uint64_t* ScrambledSobol::digits(int randomisation, int dimension) const {
  const auto record = at(kLanes + columns_ - kGroupBits);
  return scrambled_.data() + (at(randomisation) * at(dimensions_) + at(dimension)) * record;
}

void ScrambledSobol::scramble(const StreamKey& key) {
  std::uint64_t* record = scrambled_.data();
  for (int r = 0; r < randomisations_; ++r) {
    for (int j = 0; j < dimensions_; ++j) {
      RandomStream stream(key, static_cast<std::uint64_t>(r) << 32 | static_cast<std::uint64_t>(j));
      const std::uint64_t shift = stream.bits();
      std::uint64_t matrix[64];  // column i: zero above digit i, one there, random below
      for (int i = 0; i < columns_; ++i) {
        const std::uint64_t diagonal = std::uint64_t{1} << (63 - i);
        matrix[i] = diagonal | (stream.bits() & (diagonal - 1));
      }
      std::uint64_t column[64];
      const std::uint64_t* direction = directions_.data() + at(j) * at(columns_);
      for (int k = 0; k < columns_; ++k) {
        column[k] = 0;
        for (std::uint64_t left = direction[k]; left != 0;) {
          const int i = std::countl_zero(left);
          column[k] ^= matrix[i];
          left &= ~(std::uint64_t{1} << (63 - i));
        }
      }
      for (int i = 0; i < kLanes; ++i) {
        std::uint64_t point = shift;
        for (int bit = 0; bit < kGroupBits; ++bit) {
          if (i >> bit & 1) point ^= column[bit];
        }
        *record++ = point;
      }
      for (int k = kGroupBits; k < columns_; ++k) *record++ = column[k];
    }
  }
}

void ScrambledSobol::uniforms(int randomisation, std::int64_t group, int first, int count,
                              double* out) const {
  HWY_DYNAMIC_DISPATCH(SobolUniforms)
  (digits(randomisation, first), kLanes + columns_ - kGroupBits, static_cast<std::uint64_t>(group),
   count, out);
}

void ScrambledSobol::normals(int randomisation, std::int64_t group, int first, int count,
                             double* out) const {
  HWY_DYNAMIC_DISPATCH(SobolNormals)
  (digits(randomisation, first), kLanes + columns_ - kGroupBits, static_cast<std::uint64_t>(group),
   count, out);
}

}  // namespace headflow
#endif  // HWY_ONCE
