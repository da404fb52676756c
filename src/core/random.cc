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
using VF = hn::Vec<DF>;

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

/// Two vectors of 64 random bits a call.
template <class Sink>
HWY_INLINE void EachPair(const StreamKey& key, std::uint64_t group, int pairs, Sink&& sink) {
  const DU du;
  const Keys keys = MakeKeys(du, key.seed);
  const std::uint32_t tag = static_cast<std::uint32_t>(key.purpose) << 24 | key.draw;
  const auto word = [&](VU hi, VU lo) HWY_ATTR {
    return hn::OrAnd(hn::ShiftLeft<32>(hi), lo, hn::Set(du, 0xFFFFFFFFu));
  };
  for (int off = 0; off < kLanes; off += static_cast<int>(hn::Lanes(du))) {
    const VU item = hn::Iota(du, group * kLanes + static_cast<std::uint64_t>(off));
    const VU item_low = hn::And(item, hn::Set(du, 0xFFFFFFFFu));
    const VU item_high = hn::ShiftRight<32>(item);
    const auto counter = [&](int p) HWY_ATTR {
      return Block{hn::Set(du, static_cast<std::uint64_t>(p)), item_low, item_high,
                   hn::Set(du, tag)};
    };
    const auto pass_on = [&](int p, const Block& block) HWY_ATTR {
      sink(off, p, word(block.c1, block.c0), word(block.c3, block.c2));
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

/// (bits >> 12 + 1/2) 2^-52, in (0, 1).
HWY_INLINE VF Uniform(VU bits) {
  const DU du;
  const VU one_to_two = hn::Or(hn::ShiftRight<12>(bits), hn::Set(du, 0x3FF0000000000000u));
  return hn::Sub(hn::BitCast(DF(), one_to_two), hn::Set(DF(), 1.0 - 0x1p-53));
}

void FillUniforms(const StreamKey& key, std::uint64_t group, int count, double* out) {
  EachPair(key, group, (count + 1) / 2, [&](int off, int p, VU first, VU second) HWY_ATTR {
    hn::StoreU(Uniform(first), DF(), out + 2 * p * kLanes + off);
    if (2 * p + 1 < count) hn::StoreU(Uniform(second), DF(), out + (2 * p + 1) * kLanes + off);
  });
}

/// Number `index` of a table of eight.
HWY_INLINE VF EntryOf(const double* table, VU index) {
  const hn::RebindToSigned<DF> di;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::TableLookupLanes(hn::Load(DF(), table),
                              hn::IndicesFromVec(DF(), hn::BitCast(di, index)));
#else
  return hn::GatherIndex(DF(), table, hn::BitCast(di, index));
#endif
}

/// -log u for u in (0, 1), to 2 ulp. u = 2^e m; with c of m's eighth of [1, 2), z = c m - 1 is
/// below 1/16, and log m = log(1 + z) - log c. The last c is 1/2, so that e and log c cancel as
/// u goes to 1.
HWY_INLINE VF MinusLog(VF u) {
  alignas(64) static constexpr double kC[] = {
      0x1.e1e1e1e1e1e1ep-1, 0x1.af286bca1af28p-1, 0x1.8618618618618p-1, 0x1.642c8590b2164p-1,
      0x1.47ae147ae147bp-1, 0x1.2f684bda12f68p-1, 0x1.1a7b9611a7b96p-1, 0x1p-1};
  alignas(64) static constexpr double kLogC[] = {
      -0x1.f0a30c01162a8p-5, -0x1.5ff3070a793d6p-3, -0x1.1675cababa60fp-2, -0x1.739d7f6bbd007p-2,
      -0x1.c8ff7c79a9a21p-2, -0x1.0be72e4252a83p-1, -0x1.307d7334f10bep-1, -0x1.62e42fefa39efp-1};
  const DF d;
  const DU du;
  const VU bits = hn::BitCast(du, u);
  const VU index = hn::And(hn::ShiftRight<49>(bits), hn::Set(du, 7));
  const VF m = hn::BitCast(
      d, hn::OrAnd(hn::Set(du, 0x3FF0000000000000u), bits, hn::Set(du, 0x000FFFFFFFFFFFFFu)));
  const VF e =
      hn::Sub(hn::BitCast(d, hn::Or(hn::ShiftRight<52>(bits), hn::Set(du, 0x4330000000000000u))),
              hn::Set(d, 0x1p52 + 1023));
  const VF z = hn::MulSub(m, EntryOf(kC, index), hn::Set(d, 1.0));
  VF q = hn::Set(d, 0x1.a3baea8af719cp-4);  // -log(1 + z) / z
  HWY_UNROLL(9)
  for (const double a : {-0x1.ca820efb5d346p-4, 0x1.fff04ecbc39bcp-4, -0x1.2490e5a2fe001p-3,
                         0x1.555559ce3562ap-3, -0x1.99999a1094cf8p-3, 0x1.ffffffff0b916p-3,
                         -0x1.555555554e575p-2, 0x1.0000000000037p-1, -1.0}) {
    q = hn::MulAdd(q, z, hn::Set(d, a));
  }
  const VF rest = hn::MulAdd(e, hn::Set(d, -0x1.62e42fefa39efp-1), EntryOf(kLogC, index));
  return hn::MulAdd(q, z, rest);
}

/// Two normals of 64 bits (Box and Muller): 40 for the radius, (-2 log u)^(1/2) with u = (k + 1/2)
/// 2^-40, and 24 for the angle, a multiple of 2^-24 turns plus half of that: the quadrant is two
/// signs, and with t = turns - 1/8 in it, cos = (cos 2 pi t - sin 2 pi t) / 2^(1/2), sin likewise.
/// Angles on such a grid have the moments of uniform ones below order 2^24, all of them; radii have
/// the second moment to 3e-13, the fourth to 3e-11.
HWY_INLINE void TwoNormals(VU bits, VF& x, VF& y) {
  const DF d;
  const DU du;
  const VU one_to_two = hn::OrAnd(hn::Set(du, 0x3FF0000000000800u), hn::ShiftRight<12>(bits),
                                  hn::Set(du, 0x000FFFFFFFFFF000u));
  const VF radius = hn::Sqrt(MinusLog(hn::Sub(hn::BitCast(d, one_to_two), hn::Set(d, 1.0))));

  const VU grid =
      hn::OrAnd(hn::Set(du, 0x41A0000000000001u), bits, hn::Set(du, 0x00000000007FFFFEu));
  const VF t = hn::Sub(hn::BitCast(d, grid), hn::Set(d, 0x1p27 + 0x1p-3));  // |t| < 1/8, exact
  const VF t2 = hn::Mul(t, t);
  VF sine = hn::Set(d, 0x1.e3f38399551bfp+1), cosine = hn::Set(d, 0x1.f3dbcea61b1a4p+2);
  HWY_UNROLL(6)
  for (const double a : {-0x1.e30071afc3e59p+3, 0x1.50782fda12d96p+5, -0x1.32d2cce2e5b19p+6,
                         0x1.466bc677587f8p+6, -0x1.4abbce625be41p+5, 0x1.921fb54442d18p+2}) {
    sine = hn::MulAdd(sine, t2, hn::Set(d, a));
  }
  HWY_UNROLL(6)
  for (const double a : {-0x1.a6c9c1be9eb49p+4, 0x1.e1f4fb60281f6p+5, -0x1.55d3c7dbfd139p+6,
                         0x1.03c1f081b0780p+6, -0x1.3bd3cc9be458bp+4, 1.0}) {
    cosine = hn::MulAdd(cosine, t2, hn::Set(d, a));
  }
  const VF side = hn::NegMulAdd(sine, t, cosine), height = hn::MulAdd(sine, t, cosine);
  const VF side_sign =
      hn::BitCast(d, hn::And(hn::ShiftLeft<40>(bits), hn::Set(du, 0x8000000000000000u)));
  const VF height_sign = hn::BitCast(d, hn::ShiftLeft<63>(bits));
  x = hn::Xor(hn::Mul(radius, side), side_sign);
  y = hn::Xor(hn::Mul(radius, height), height_sign);
}

void FillNormals(const StreamKey& key, std::uint64_t group, int count, double* out) {
  EachPair(key, group, (count + 3) / 4, [&](int off, int p, VU first, VU second) HWY_ATTR {
    double* to = out + 4 * p * kLanes + off;
    const int left = count - 4 * p;
    VF x, y;
    TwoNormals(first, x, y);
    hn::StoreU(x, DF(), to);
    if (left > 1) hn::StoreU(y, DF(), to + kLanes);
    if (left <= 2) return;
    TwoNormals(second, x, y);
    hn::StoreU(x, DF(), to + 2 * kLanes);
    if (left > 3) hn::StoreU(y, DF(), to + 3 * kLanes);
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
