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

#include "core/simd_math-inl.h"
#include "model/activation.h"
#include "model/activations/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
template <bool kSink>
struct PerHead {
  static void Forward(int H, int L, const double* b, double v, double* u, double* state,
                      double* mean) {
    const V scale = hn::Set(d, (kSink ? v : 1.0) / H);
    for (int off = 0; off < kLanes; off += kStep) {
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

  static void Backward(int H, int L, double v, const double* s, double* u, const double* state,
                       double* grad_b, double* grad_v) {
    const double scale = (kSink ? v : 1.0) / H;
    for (int off = 0; off < kLanes; off += kStep) {
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
  template <int P>
  static HWY_NOINLINE void Placements(const PlacementBatch& batch) {
    const int H = batch.heads, L = batch.tokens;
    const double scale = (kSink ? batch.v : 1.0) / H;
    double* inverse = batch.scratch;        // [H][P]  1 / Z_hp
    double* relevant = At(inverse, H * P);  // [H][P]  n_hp / Z_hp
    double* s = At(relevant, H * P);        // [L][P]  2 w, zero at l = p
    double* s_relevant = At(s, L * P);      // [P]     2 w at l = p
    double* own = At(s_relevant, P);        // [P]     sum_h n_hp / Z_hp
    double* before = At(own, P);            // [L]     partial sums

    for (int off = 0; off < kLanes; off += kStep) {
      double* e = batch.chi + off;
      for (int p = 0; p < P; ++p) Store(hn::Zero(d), own + off, p);
      for (int h = 0; h < H; ++h) {
        const double* eh = e + static_cast<std::ptrdiff_t>(h) * L * kLanes;
        V sum = kSink ? simd::Exp(d, hn::Set(d, batch.b[h])) : hn::Zero(d);
        for (int l = 0; l < L; ++l) {
          const V value = simd::Exp(d, Load(e, h * L + l));
          Store(value, e, h * L + l);
          if (l < P) Store(sum, before + off, l);
          sum = hn::Add(sum, value);
        }
        V after = hn::Zero(d);
        for (int l = L - 1; l >= P; --l) after = hn::Add(after, Load(eh, l));
        HWY_UNROLL(8)
        for (int p = P - 1; p >= 0; --p) {
          const V noise = Load(eh, p);
          const V n = hn::Mul(noise, simd::Exp(d, Load(batch.mu + off, h * P + p)));
          const V Z = hn::Add(hn::Add(Load(before + off, p), after), n);
          const V inv = hn::Div(hn::Set(d, 1.0), Z);
          Store(inv, inverse + off, h * P + p);
          const V share = hn::Mul(n, inv);
          Store(share, relevant + off, h * P + p);
          AddTo(share, own + off, p);
          after = hn::Add(after, noise);
        }
      }

      // mean_lp = scale * sum_h e_hl / Z_hp, the loss, and s = 2 w.
      V loss = Load(batch.loss + off, 0);
      const auto residual = [&](V mean, int l, int p) HWY_ATTR {
        V w = hn::NegMulAdd(mean, hn::Set(d, scale), hn::Set(d, l == p ? 1.0 : 0.0));
        const V doubled = hn::Add(w, w);
        if (batch.weight == nullptr) {
          loss = hn::MulAdd(w, w, loss);
          return doubled;
        }
        const V weight = Load(batch.weight + off, p);
        loss = hn::MulAdd(hn::Mul(w, w), weight, loss);
        return hn::Mul(doubled, weight);
      };
      for (int l = 0; l < L; l += 2) {
        const int second = l + 1 < L ? l + 1 : l;
        V mean0[P], mean1[P];
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) mean0[p] = mean1[p] = hn::Zero(d);
        for (int h = 0; h < H; ++h) {
          const V e0 = Load(e, h * L + l), e1 = Load(e, h * L + second);
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            const V inv = Load(inverse + off, h * P + p);
            mean0[p] = hn::MulAdd(e0, inv, mean0[p]);
            mean1[p] = hn::MulAdd(e1, inv, mean1[p]);
          }
        }
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          if (p == l) {
            Store(residual(Load(own + off, p), l, p), s_relevant + off, p);
            Store(hn::Zero(d), s + off, l * P + p);
          } else {
            Store(residual(mean0[p], l, p), s + off, l * P + p);
          }
        }
        if (second == l) break;
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          if (p == second) {
            Store(residual(Load(own + off, p), second, p), s_relevant + off, p);
            Store(hn::Zero(d), s + off, second * P + p);
          } else {
            Store(residual(mean1[p], second, p), s + off, second * P + p);
          }
        }
      }
      Store(loss, batch.loss + off, 0);

      // d_hp, then g summed over placements.
      V inner_sum = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        V inner[P];
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) inner[p] = hn::Zero(d);
        for (int l = 0; l < L; ++l) {
          const V value = Load(e, h * L + l);
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            inner[p] = hn::MulAdd(value, Load(s + off, l * P + p), inner[p]);
          }
        }
        V inv[P], shift[P];  // shift_p = inner_p / Z_p
        V shift_sum = hn::Zero(d);
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          inv[p] = Load(inverse + off, h * P + p);
          const V share = Load(relevant + off, h * P + p);
          const V own_s = Load(s_relevant + off, p);
          inner[p] = hn::MulAdd(inner[p], inv[p], hn::Mul(share, own_s));
          shift[p] = hn::Mul(inner[p], inv[p]);
          shift_sum = hn::Add(shift_sum, shift[p]);
          const V centred = hn::Mul(hn::Sub(inner[p], own_s), hn::Set(d, scale));
          Store(hn::Mul(share, centred), batch.g_relevant + off, h * P + p);
          if constexpr (kSink) inner_sum = hn::Add(inner_sum, inner[p]);
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
        const auto gradient_row = [&](int l, V total) HWY_ATTR {
          HWY_UNROLL(8)
          for (int p = 0; p < P; ++p) {
            total = hn::NegMulAdd(inv[p], Load(s + off, l * P + p), total);
          }
          return hn::Mul(hn::Mul(Load(e, h * L + l), hn::Set(d, scale)), total);
        };
        HWY_UNROLL(8)
        for (int l = 0; l < P; ++l) {
          const V own_g = Load(batch.g_relevant + off, h * P + l);
          Store(hn::Add(gradient_row(l, others[l]), own_g), e, h * L + l);
        }
        for (int l = P; l < L; ++l) Store(gradient_row(l, shift_sum), e, h * L + l);
        if constexpr (kSink) {
          const V sink = hn::Mul(simd::Exp(d, hn::Set(d, batch.b[h])), hn::Set(d, scale));
          AddTo(hn::Mul(sink, shift_sum), batch.grad_b + off, h);
        }
      }
      if constexpr (kSink) {
        AddTo(hn::Mul(inner_sum, hn::Set(d, -1.0 / H)), batch.grad_v + off, 0);
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

  static ActivationKernels Kernels() { return {Forward, Backward, AnyPlacements}; }
};

}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
