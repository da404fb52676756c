#include "core/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/random.cc"
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
using VU = hn::Vec<DU>;

/// Philox4x32-10 on 64-bit lanes. Only the lower halves count: the product reads nothing else,
/// so what is in the upper ones need not be cleared.
struct Block {
  VU c0, c1, c2, c3;
};

HWY_INLINE VU Multiply32(DU d, VU a, VU b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, (hn::GetLane(a) & 0xFFFFFFFFu) * (hn::GetLane(b) & 0xFFFFFFFFu));
#else
  const hn::Repartition<std::uint32_t, DU> d32;
  (void)d;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

/// Keys of the ten rounds.
struct Keys {
  VU k0[10], k1[10];
};

HWY_INLINE Keys MakeKeys(DU d, std::uint64_t seed) {
  Keys out;
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    out.k0[round] = hn::Set(d, k0);
    out.k1[round] = hn::Set(d, k1);
  }
  return out;
}

/// Several blocks side by side: a round waits for the one before.
template <int kBlocks>
HWY_INLINE void Philox(DU d, const Keys& keys, Block (&c)[kBlocks]) {
  const VU mul0 = hn::Set(d, 0xD2511F53u), mul1 = hn::Set(d, 0xCD9E8D57u);
  HWY_UNROLL(10) for (int round = 0; round < 10; ++round) {
    HWY_UNROLL(4) for (int i = 0; i < kBlocks; ++i) {
      const VU p0 = Multiply32(d, mul0, c[i].c0);
      const VU p1 = Multiply32(d, mul1, c[i].c2);
      const VU hi0 = hn::ShiftRight<32>(p0), hi1 = hn::ShiftRight<32>(p1);
      c[i] = {hn::Xor3(hi1, c[i].c1, keys.k0[round]), p1, hn::Xor3(hi0, c[i].c3, keys.k1[round]),
              p0};
    }
  }
}

/// Two vectors of uniforms in (0, 1) a call: (bits >> 12 + 1/2) 2^-52.
template <class Sink>
HWY_INLINE void EachPair(const StreamKey& key, std::uint64_t group, int pairs, Sink&& sink) {
  const DF df;
  const DU du;
  const Keys keys = MakeKeys(du, key.seed);
  const std::uint32_t tag = static_cast<std::uint32_t>(key.purpose) << 24 | key.draw;
  const auto to_uniform = [&](VU hi, VU lo) HWY_ATTR {
    const VU bits = hn::OrAnd(hn::ShiftLeft<32>(hi), lo, hn::Set(du, 0xFFFFFFFFu));
    const VU one_to_two = hn::Or(hn::ShiftRight<12>(bits), hn::Set(du, 0x3FF0000000000000u));
    return hn::Sub(hn::BitCast(df, one_to_two), hn::Set(df, 1.0 - 0x1p-53));
  };
  for (int off = 0; off < kLanes; off += static_cast<int>(hn::Lanes(df))) {
    const VU item = hn::Iota(du, group * kLanes + static_cast<std::uint64_t>(off));
    const VU item_low = hn::And(item, hn::Set(du, 0xFFFFFFFFu));
    const VU item_high = hn::ShiftRight<32>(item);
    const auto counter = [&](int p) HWY_ATTR {
      return Block{hn::Set(du, static_cast<std::uint64_t>(p)), item_low, item_high,
                   hn::Set(du, tag)};
    };
    const auto pass_on = [&](int p, const Block& block) HWY_ATTR {
      sink(off, p, to_uniform(block.c1, block.c0), to_uniform(block.c3, block.c2));
    };
    int p = 0;
    for (; p + 2 <= pairs; p += 2) {
      Block two[] = {counter(p), counter(p + 1)};
      Philox(du, keys, two);
      pass_on(p, two[0]);
      pass_on(p + 1, two[1]);
    }
    if (p < pairs) {
      Block one[] = {counter(p)};
      Philox(du, keys, one);
      pass_on(p, one[0]);
    }
  }
}

void FillUniforms(const StreamKey& key, std::uint64_t group, int count, double* out) {
  const DF d;
  EachPair(key, group, (count + 1) / 2, [&](int off, int p, hn::Vec<DF> u, hn::Vec<DF> w) HWY_ATTR {
    hn::StoreU(u, d, out + 2 * p * kLanes + off);
    if (2 * p + 1 < count) hn::StoreU(w, d, out + (2 * p + 1) * kLanes + off);
  });
}

void FillNormals(const StreamKey& key, std::uint64_t group, int count, double* out) {
  const DF d;
  EachPair(key, group, (count + 1) / 2, [&](int off, int p, hn::Vec<DF> u, hn::Vec<DF> w) HWY_ATTR {
    const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), simd::Log(d, u)));
    hn::Vec<DF> sine, cosine;
    simd::SinCosTurn(d, w, sine, cosine);
    hn::StoreU(hn::Mul(radius, cosine), d, out + 2 * p * kLanes + off);
    if (2 * p + 1 < count) {
      hn::StoreU(hn::Mul(radius, sine), d, out + (2 * p + 1) * kLanes + off);
    }
  });
}

}  // namespace
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {

HWY_EXPORT(FillUniforms);
HWY_EXPORT(FillNormals);

void fill_normals(const StreamKey& key, std::uint64_t group, int count, double* out) {
  HWY_DYNAMIC_DISPATCH(FillNormals)(key, group, count, out);
}

void fill_uniforms(const StreamKey& key, std::uint64_t group, int count, double* out) {
  HWY_DYNAMIC_DISPATCH(FillUniforms)(key, group, count, out);
}

std::uint64_t RandomStream::bits() {
  if (left_ == 0) {
    const r123::Philox4x32::key_type key{
        {static_cast<std::uint32_t>(key_.seed), static_cast<std::uint32_t>(key_.seed >> 32)}};
    const r123::Philox4x32::ctr_type counter{
        {position_++, static_cast<std::uint32_t>(item_), static_cast<std::uint32_t>(item_ >> 32),
         static_cast<std::uint32_t>(key_.purpose) << 24 | key_.draw}};
    const auto out = r123::Philox4x32()(counter, key);
    buffer_[0] = static_cast<std::uint64_t>(out[1]) << 32 | out[0];
    buffer_[1] = static_cast<std::uint64_t>(out[3]) << 32 | out[2];
    left_ = 2;
  }
  return buffer_[2 - left_--];
}

double RandomStream::uniform() { return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52; }

double RandomStream::normal() {
  if (has_normal_) {
    has_normal_ = false;
    return next_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  next_normal_ = radius * std::sin(angle);
  has_normal_ = true;
  return radius * std::cos(angle);
}

}  // namespace headflow
#endif  // HWY_ONCE
