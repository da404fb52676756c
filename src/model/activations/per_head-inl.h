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
    if constexpr (kSink) ExpOfEach(batch.parameters, batch.sizes.H, PlacementWork<P>::Sink(batch));
    const PlacementWork<P> work(batch);
    for (int off = 0; off < kLanes; off += Step()) {
      work.Normalise(off);
      work.Residuals(off);
      for (int h = 0; h < work.H; ++h) work.Gradient(off, h);
    }
  }

  /// The steps, each for the lanes from `off` on, and their scratch space.
  template <int P>
  struct PlacementWork {
    const PlacementBatch& batch;
    int H, L;
    double scale;        // v/H
    double* e;           // [H][L]  scores in bits; then e_hl; then their gradient
    double* inverse;     // [H][P]  1 / Z_hp
    double* relevant;    // [H][P]  n_hp / Z_hp
    double* s;           // [L][P]  2 w v/H, zero at l = p
    double* s_relevant;  // [P]     2 w v/H at l = p
    double* own;         // [P]     sum_h n_hp / Z_hp
    double* before;      // [P]     sums of e_hl over l < p, of one head
    const double* sink;  // e^{b_h}, one number a head

    explicit HWY_INLINE PlacementWork(const PlacementBatch& of)
        : batch(of),
          H(of.sizes.H),
          L(of.sizes.L),
          scale((kSink ? of.parameters[H] : 1.0) / H),
          e(of.chi),
          inverse(of.scratch),
          relevant(At(inverse, H * P)),
          s(At(relevant, H * P)),
          s_relevant(At(s, L * P)),
          own(At(s_relevant, P)),
          before(At(own, P)),
          sink(Sink(of)) {}

    /// Behind all the others.
    static HWY_INLINE double* Sink(const PlacementBatch& batch) {
      return At(batch.scratch, 2 * batch.sizes.H * P + batch.sizes.L * (P + 1) + 2 * P);
    }

    /// Exponentials, and the normalisations with the relevant token's shares in them.
    HWY_INLINE void Normalise(int off) const {
      double* here = e + off;
      for (int p = 0; p < P; ++p) Store(hn::Zero(d), own + off, p);
      for (int h = 0; h < H; ++h) {
        const double* eh = here + static_cast<std::ptrdiff_t>(h) * L * kLanes;
        V sum = kSink ? hn::Set(d, sink[h]) : hn::Zero(d);
        for (int l = 0; l < L; ++l) {
          const V value = simd::Exp2(d, Load(here, h * L + l));
          Store(value, here, h * L + l);
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
    }

    struct Sums {
      V loss;    // sum of weighted w^2
      V mean_w;  // sum of weighted w mean / scale, for v
    };

    /// w = target - scale mean is added to the sums; returns what is s of it.
    HWY_INLINE V Residual(int off, V mean, double target, int p, Sums& sums) const {
      const V w = hn::NegMulAdd(mean, hn::Set(d, scale), hn::Set(d, target));
      const V weighted = batch.weight ? hn::Mul(w, Load(batch.weight + off, p)) : w;
      sums.loss = hn::MulAdd(w, weighted, sums.loss);
      if constexpr (kSink) sums.mean_w = hn::MulAdd(mean, weighted, sums.mean_w);
      return hn::Mul(weighted, hn::Set(d, 2.0 * scale));
    }

    /// Residuals of tokens l, ..., l + kTokens - 1 in all placements.
    template <int kTokens>
    HWY_INLINE void ResidualTile(int off, int l, Sums& sums) const {
      V mean[kTokens][P];
      HWY_UNROLL(2)
      for (int t = 0; t < kTokens; ++t) {
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) mean[t][p] = hn::Zero(d);
      }
      for (int h = 0; h < H; ++h) {
        V value[kTokens];
        HWY_UNROLL(2)
        for (int t = 0; t < kTokens; ++t) value[t] = Load(e + off, h * L + l + t);
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
            Store(Residual(off, Load(own + off, p), 1.0, p, sums), s_relevant + off, p);
            Store(hn::Zero(d), s + off, (l + t) * P + p);
          } else {
            Store(Residual(off, mean[t][p], 0.0, p, sums), s + off, (l + t) * P + p);
          }
        }
      }
    }

    /// mean_lp = scale * sum_h e_hl / Z_hp, the loss, and s.
    HWY_INLINE void Residuals(int off) const {
      Sums sums{Load(batch.loss + off, 0), hn::Zero(d)};
      int l = 0;
      for (; l + 2 <= L; l += 2) ResidualTile<2>(off, l, sums);
      if (l < L) ResidualTile<1>(off, l, sums);
      Store(sums.loss, batch.loss + off, 0);
      if constexpr (kSink) {
        AddTo(hn::Mul(sums.mean_w, hn::Set(d, -2.0 / H)), At(batch.grad, H) + off, 0);
      }
    }

    /// inner_p = sum_{l != p} e_hl s_lp.
    HWY_INLINE void Inner(int off, int h, V (&inner)[P]) const {
      HWY_UNROLL(8)
      for (int p = 0; p < P; ++p) inner[p] = hn::Zero(d);
      HWY_UNROLL(8)
      for (int l = 0; l < P; ++l) {
        const V value = Load(e + off, h * L + l);
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          if (p != l) inner[p] = hn::MulAdd(value, Load(s + off, l * P + p), inner[p]);
        }
      }
      for (int l = P; l < L; ++l) {
        const V value = Load(e + off, h * L + l);
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          inner[p] = hn::MulAdd(value, Load(s + off, l * P + p), inner[p]);
        }
      }
    }

    /// others_p = sum_{p' != p} x_p', from both ends.
    static HWY_INLINE void SumOthers(const V (&x)[P], V (&others)[P]) {
      V left = hn::Zero(d);
      HWY_UNROLL(8)
      for (int p = 0; p < P; ++p) {
        others[p] = left;
        left = hn::Add(left, x[p]);
      }
      V right = hn::Zero(d);
      HWY_UNROLL(8)
      for (int p = P - 1; p >= 0; --p) {
        others[p] = hn::Add(others[p], right);
        right = hn::Add(right, x[p]);
      }
    }

    /// d_hp, then g summed over placements. Entries with l = p are zero in s.
    HWY_INLINE void Gradient(int off, int h) const {
      V inner[P], inv[P], shift[P], own_g[P], others[P];  // shift_p = d_hp / Z_hp
      Inner(off, h, inner);
      V shift_sum = hn::Zero(d);
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
      SumOthers(shift, others);
      HWY_UNROLL(8)
      for (int l = 0; l < P; ++l) {
        V total = others[l];
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) {
          if (p != l) total = hn::NegMulAdd(inv[p], Load(s + off, l * P + p), total);
        }
        Store(hn::MulAdd(Load(e + off, h * L + l), total, own_g[l]), e + off, h * L + l);
      }
      for (int l = P; l < L; ++l) {
        V total = shift_sum;
        HWY_UNROLL(8)
        for (int p = 0; p < P; ++p) total = hn::NegMulAdd(inv[p], Load(s + off, l * P + p), total);
        Store(hn::Mul(Load(e + off, h * L + l), total), e + off, h * L + l);
      }
      if constexpr (kSink) AddTo(hn::Mul(hn::Set(d, sink[h]), shift_sum), batch.grad + off, h);
    }
  };

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
