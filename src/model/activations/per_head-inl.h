// Activations that normalise each head by itself:
//   sigma_hl = v u_hl,   u_hl = e^{chi_hl} / Z_h,   Z_h = [e^{b_h}] + sum_l e^{chi_hl}.
// With the sink term in brackets this is softmax-1; without it (and v = 1) softmax.
// With s = -d loss/d mean and d_h = sum_l u_hl s_l,
//   d loss/d chi_hl = -(v/H) u_hl (s_l - d_h),
//   d loss/d b_h    =  (v/H) (e^{b_h}/Z_h) d_h,      d loss/d v = -(1/H) sum_h d_h.

#if defined(HEADFLOW_MODEL_PER_HEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADFLOW_MODEL_PER_HEAD_INL_H_
#undef HEADFLOW_MODEL_PER_HEAD_INL_H_
#else
#define HEADFLOW_MODEL_PER_HEAD_INL_H_
#endif

#include <type_traits>

#include "core/simd_math-inl.h"
#include "model/activation.h"
#include "model/activations/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
template <bool kSink>
struct PerHead {
  /// Parameters: b, then v; none without a sink.
  static void Forward(const Sizes& sizes, const double* parameters, double* u, double* state,
                      double* mean) {
    const int H = sizes.H, L = sizes.L;
    const double* b = parameters;
    const double v = kSink ? parameters[H] : 1.0;
    const V scale = hn::Set(d, v / H);
    for (int off = 0; off < kLanes; off += Step()) {
      double* uo = u + off;
      for (int l = 0; l < L; ++l) Store(hn::Zero(d), mean + off, l);
      for (int h = 0; h < H; ++h) {
        V top = kSink ? hn::Set(d, b[h]) : Load(uo, h * L);
        for (int l = kSink ? 0 : 1; l < L; ++l) top = hn::Max(top, Load(uo, h * L + l));
        V Z = kSink ? simd::Exp(d, hn::Sub(hn::Set(d, b[h]), top)) : hn::Zero(d);
        const V sink = Z;
        for (int l = 0; l < L; ++l) {
          const V e = simd::Exp(d, hn::Sub(Load(uo, h * L + l), top));
          Store(e, uo, h * L + l);
          Z = hn::Add(Z, e);
        }
        const V inverse = hn::Div(hn::Set(d, 1.0), Z);
        if constexpr (kSink) Store(hn::Mul(sink, inverse), state + off, h);
        for (int l = 0; l < L; ++l) {
          const V weight = hn::Mul(Load(uo, h * L + l), inverse);
          Store(weight, uo, h * L + l);
          AddTo(hn::Mul(weight, scale), mean + off, l);
        }
      }
    }
  }

  static void Backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                       const double* state, double* grad) {
    const int H = sizes.H, L = sizes.L;
    const double scale = (kSink ? parameters[H] : 1.0) / H;
    double *grad_b = grad, *grad_v = kSink ? At(grad, H) : nullptr;
    for (int off = 0; off < kLanes; off += Step()) {
      double* uo = u + off;
      for (int h = 0; h < H; ++h) {
        V inner = hn::Zero(d);
        for (int l = 0; l < L; ++l) {
          inner = hn::MulAdd(Load(uo, h * L + l), Load(s + off, l), inner);
        }
        for (int l = 0; l < L; ++l) {
          const V centred = hn::Sub(inner, Load(s + off, l));
          Store(hn::Mul(hn::Mul(Load(uo, h * L + l), centred), hn::Set(d, scale)), uo, h * L + l);
        }
        if constexpr (kSink) {
          const V sink = hn::Mul(Load(state + off, h), hn::Set(d, scale));
          AddTo(hn::Mul(sink, inner), grad_b + off, h);
          AddTo(hn::Mul(inner, hn::Set(d, -1.0 / H)), grad_v + off, 0);
        }
      }
    }
  }

  /// P placements sharing the exponentials of the noise scores; moderate scores only.
  /// With e_hl = e^{chi_hl} and n_hp = e_hp e^{mu_hp}:
  ///   Z_hp = [e^{b_h}] + sum_{l != p} e_hl + n_hp   (the sum without l = p is accumulated
  /// from both ends, never by subtraction), so that every step is a small matrix product.
  /// The factor v/H of the gradient is in s from the start.
  template <int P>
  static HWY_NOINLINE void Placements(const PlacementBatch& batch) {
    const int H = batch.sizes.H, L = batch.sizes.L;
    const double scale = (kSink ? batch.parameters[H] : 1.0) / H;
    double* inverse = batch.scratch;        // [H][P]  1 / Z_hp
    double* relevant = At(inverse, H * P);  // [H][P]  n_hp / Z_hp
    double* s = At(relevant, H * P);        // [L][P]  2 w v/H, zero at l = p
    double* s_relevant = At(s, L * P);      // [P]     2 w v/H at l = p
    double* own = At(s_relevant, P);        // [P]     sum_h n_hp / Z_hp
    double* before = At(own, P);            // [L]     partial sums
    double* sink = At(before, L);           // e^{b_h}, one number a head
    if constexpr (kSink) ExpOfEach(batch.parameters, H, sink);

    for (int off = 0; off < kLanes; off += Step()) {
      double* e = batch.chi + off;
      for (int p = 0; p < P; ++p) Store(hn::Zero(d), own + off, p);
      for (int h = 0; h < H; ++h) {
        const double* eh = e + static_cast<std::ptrdiff_t>(h) * L * kLanes;
        V sum = kSink ? hn::Set(d, sink[h]) : hn::Zero(d);
        for (int l = 0; l < L; ++l) {
          const V value = simd::Exp2(d, Load(e, h * L + l));
          Store(value, e, h * L + l);
          if (l < P) Store(sum, before + off, l);
          sum = hn::Add(sum, value);
        }
        V after = hn::Zero(d);
        for (int l = L - 1; l >= P; --l) after = hn::Add(after, Load(eh, l));
        HWY_UNROLL(8)
        for (int p = P - 1; p >= 0; --p) {
          const V noise = Load(eh, p);
          const V n = hn::Mul(noise, SignalFactor(batch, off, h * P + p));
          const V Z = hn::Add(hn::Add(Load(before + off, p), after), n);
          const V inv = hn::Div(hn::Set(d, 1.0), Z);
          Store(inv, inverse + off, h * P + p);
          const V share = hn::Mul(n, inv);
          Store(share, relevant + off, h * P + p);
          AddTo(share, own + off, p);
          after = hn::Add(after, noise);
        }
      }

      // mean_lp = scale * sum_h e_hl / Z_hp, the loss, and s.
      V loss = Load(batch.loss + off, 0);
      V mean_w = hn::Zero(d);  // sum of w mean / scale, for v
      const auto residual = [&](V mean, double target, int p) HWY_ATTR {
        const V w = hn::NegMulAdd(mean, hn::Set(d, scale), hn::Set(d, target));
        const V weighted = batch.weight ? hn::Mul(w, Load(batch.weight + off, p)) : w;
        loss = hn::MulAdd(w, weighted, loss);
        if constexpr (kSink) mean_w = hn::MulAdd(mean, weighted, mean_w);
        return hn::Mul(weighted, hn::Set(d, 2.0 * scale));
      };
      const auto mean_tile = [&](int l, auto tile) HWY_ATTR {
        constexpr int kTokens = tile();
        V mean[kTokens][P];
        HWY_UNROLL(2)
        for (int t = 0; t < kTokens; ++t) {
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) mean[t][p] = hn::Zero(d);
        }
        for (int h = 0; h < H; ++h) {
          V value[kTokens];
          HWY_UNROLL(2)
          for (int t = 0; t < kTokens; ++t) value[t] = Load(e, h * L + l + t);
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            const V inv = Load(inverse + off, h * P + p);
            HWY_UNROLL(2)
            for (int t = 0; t < kTokens; ++t) mean[t][p] = hn::MulAdd(value[t], inv, mean[t][p]);
          }
        }
        HWY_UNROLL(2)
        for (int t = 0; t < kTokens; ++t) {
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            if (p == l + t) {
              Store(residual(Load(own + off, p), 1.0, p), s_relevant + off, p);
              Store(hn::Zero(d), s + off, (l + t) * P + p);
            } else {
              Store(residual(mean[t][p], 0.0, p), s + off, (l + t) * P + p);
            }
          }
        }
      };
      int l = 0;
      for (; l + 2 <= L; l += 2) mean_tile(l, std::integral_constant<int, 2>());
      if (l < L) mean_tile(l, std::integral_constant<int, 1>());
      Store(loss, batch.loss + off, 0);
      if constexpr (kSink) {
        AddTo(hn::Mul(mean_w, hn::Set(d, -2.0 / H)), At(batch.grad, H) + off, 0);
      }

      // d_hp, then g summed over placements. Entries with l = p are zero in s.
      for (int h = 0; h < H; ++h) {
        V inner[P];
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) inner[p] = hn::Zero(d);
        HWY_UNROLL(8)
        for (int l = 0; l < P; ++l) {
          const V value = Load(e, h * L + l);
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            if (p != l) inner[p] = hn::MulAdd(value, Load(s + off, l * P + p), inner[p]);
          }
        }
        for (int l = P; l < L; ++l) {
          const V value = Load(e, h * L + l);
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            inner[p] = hn::MulAdd(value, Load(s + off, l * P + p), inner[p]);
          }
        }
        V inv[P], shift[P];  // shift_p = inner_p / Z_p
        V shift_sum = hn::Zero(d);
        V own_g[P];
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          inv[p] = Load(inverse + off, h * P + p);
          const V share = Load(relevant + off, h * P + p);
          const V own_s = Load(s_relevant + off, p);
          inner[p] = hn::MulAdd(inner[p], inv[p], hn::Mul(share, own_s));
          shift[p] = hn::Mul(inner[p], inv[p]);
          shift_sum = hn::Add(shift_sum, shift[p]);
          own_g[p] = hn::Mul(share, hn::Sub(inner[p], own_s));
          Store(own_g[p], batch.g_relevant + off, h * P + p);
        }
        // Sums of shift without one placement, from both ends.
        V others[P];
        V left = hn::Zero(d);
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          others[p] = left;
          left = hn::Add(left, shift[p]);
        }
        V right = hn::Zero(d);
        HWY_UNROLL(8)
        for (int p = P - 1; p >= 0; --p) {
          others[p] = hn::Add(others[p], right);
          right = hn::Add(right, shift[p]);
        }
        HWY_UNROLL(8)
        for (int l = 0; l < P; ++l) {
          V total = others[l];
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            if (p != l) total = hn::NegMulAdd(inv[p], Load(s + off, l * P + p), total);
          }
          Store(hn::MulAdd(Load(e, h * L + l), total, own_g[l]), e, h * L + l);
        }
        for (int l = P; l < L; ++l) {
          V total = shift_sum;
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            total = hn::NegMulAdd(inv[p], Load(s + off, l * P + p), total);
          }
          Store(hn::Mul(Load(e, h * L + l), total), e, h * L + l);
        }
        if constexpr (kSink) {
          AddTo(hn::Mul(hn::Set(d, sink[h]), shift_sum), batch.grad + off, h);
        }
      }
    }
  }

  /// out[h] = e^{b_h}; out has room for whole vectors.
  static void ExpOfEach(const double* b, int H, double* out) {
    for (int h = 0; h < H; h += kLanes) {
      for (int i = 0; i < kLanes; ++i) out[h + i] = h + i < H ? b[h + i] : 0.0;
      for (int off = 0; off < kLanes; off += Step()) {
        hn::Store(simd::Exp(d, hn::Load(d, out + h + off)), d, out + h + off);
      }
    }
  }

  static void AnyPlacements(const PlacementBatch& batch) {
    using Function = void (*)(const PlacementBatch&);
    static constexpr Function table[kMaxPlacements] = {Placements<1>, Placements<2>, Placements<3>,
                                                       Placements<4>, Placements<5>, Placements<6>,
                                                       Placements<7>, Placements<8>};
    table[batch.placements - 1](batch);
  }
};

}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
