// Bayes-softmax: all heads share one normalisation,
//   sigma_hl = H u_hl,  u_hl = a_hl / sum_{h'l'} a_h'l',  a_hl = e^{chi_hl + b_h}.
// With c_l = sum_h a_hl the mean output is c_l / sum_l c_l, and with ubar_l = sum_h u_hl
//   d loss/d chi_hl = -u_hl (s_l - sum_l ubar_l s_l),   d loss/d b_h = sum_l of the same.

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/b_softmax.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "core/simd_math-inl.h"
#include "model/activation.h"
#include "model/activations/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {

void Forward(int H, int L, const double* b, double /*v*/, double* u, double* /*state*/,
             double* mean) {
  for (int off = 0; off < kLanes; off += kStep) {
    V top = hn::Set(d, -hwy::HighestValue<double>());
    for (int h = 0; h < H; ++h) {
      for (int l = 0; l < L; ++l) {
        top = hn::Max(top, hn::Add(Load(u + off, h * L + l), hn::Set(d, b[h])));
      }
    }
    V Z = hn::Zero(d);
    for (int l = 0; l < L; ++l) {
      V column = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        const V score = hn::Add(Load(u + off, h * L + l), hn::Set(d, b[h]));
        const V a = simd::Exp(d, hn::Sub(score, top));
        Store(a, u + off, h * L + l);
        column = hn::Add(column, a);
      }
      Store(column, mean + off, l);
      Z = hn::Add(Z, column);
    }
    const V inverse = hn::Div(hn::Set(d, 1.0), Z);
    for (int l = 0; l < L; ++l) Store(hn::Mul(Load(mean + off, l), inverse), mean + off, l);
    for (int j = 0; j < H * L; ++j) Store(hn::Mul(Load(u + off, j), inverse), u + off, j);
  }
}

void Backward(int H, int L, double /*v*/, const double* s, double* u, const double* /*state*/,
              double* grad_b, double* /*grad_v*/) {
  for (int off = 0; off < kLanes; off += kStep) {
    V inner = hn::Zero(d);
    for (int l = 0; l < L; ++l) {
      V column = hn::Zero(d);
      for (int h = 0; h < H; ++h) column = hn::Add(column, Load(u + off, h * L + l));
      inner = hn::MulAdd(column, Load(s + off, l), inner);
    }
    for (int h = 0; h < H; ++h) {
      V row = hn::Zero(d);
      for (int l = 0; l < L; ++l) {
        const V g = hn::Mul(Load(u + off, h * L + l), hn::Sub(inner, Load(s + off, l)));
        Store(g, u + off, h * L + l);
        row = hn::Add(row, g);
      }
      AddTo(row, grad_b + off, h);
    }
  }
}

/// Placements that share the exponentials of the noise. Only sums over heads enter the
/// loss, so the cost per placement is O(L + H) instead of O(L H).
void Placements(const PlacementBatch& batch) {
  const int H = batch.heads, L = batch.tokens, P = batch.placements;
  double* column = batch.scratch;  // [L]     c_l
  double* before = At(column, L);  // [L]     partial sums of c
  double* factor = At(before, L);  // [L]     sum over p != l of (inner - s)/Z
  double* w = At(factor, L);       // [L]     residuals of one placement
  double* relevant = At(w, L);     // [H][P]  a_hp e^{mu_hp}
  for (int off = 0; off < kLanes; off += kStep) {
    double* a = batch.chi + off;
    V sum = hn::Zero(d);
    for (int l = 0; l < L; ++l) {
      V c = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        const V value = simd::Exp(d, hn::Add(Load(a, h * L + l), hn::Set(d, batch.b[h])));
        Store(value, a, h * L + l);
        c = hn::Add(c, value);
      }
      Store(c, column + off, l);
      Store(sum, before + off, l);
      Store(hn::Zero(d), factor + off, l);
      sum = hn::Add(sum, c);
    }
    V after = hn::Zero(d);
    for (int l = L - 1; l >= P; --l) after = hn::Add(after, Load(column + off, l));

    V loss = Load(batch.loss + off, 0);
    for (int p = P - 1; p >= 0; --p) {
      V n = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        const V value = hn::Mul(Load(a, h * L + p), simd::Exp(d, Load(batch.mu + off, h * P + p)));
        Store(value, relevant + off, h * P + p);
        n = hn::Add(n, value);
      }
      const V others = hn::Add(Load(before + off, p), after);
      const V inverse = hn::Div(hn::Set(d, 1.0), hn::Add(others, n));
      after = hn::Add(after, Load(column + off, p));

      const V share = hn::Mul(n, inverse);
      const V w_relevant = hn::Mul(others, inverse);  // 1 - share without cancellation
      V squares = hn::Mul(w_relevant, w_relevant);
      V inner = hn::Mul(share, w_relevant);
      for (int l = 0; l < L; ++l) {
        const V mean = hn::Mul(Load(column + off, l), inverse);
        const V other = hn::Set(d, l == p ? 0.0 : -1.0);
        const V residual = hn::Mul(mean, other);
        Store(residual, w + off, l);
        squares = hn::MulAdd(residual, residual, squares);
        inner = hn::MulAdd(mean, residual, inner);
      }
      V twice = hn::Set(d, 2.0);
      if (batch.weight) {
        const V weight = Load(batch.weight + off, p);
        squares = hn::Mul(squares, weight);
        twice = hn::Add(weight, weight);
      }
      loss = hn::Add(loss, squares);
      const V scale = hn::Mul(twice, inverse);
      for (int l = 0; l < L; ++l) {
        if (l == p) continue;
        const V centred = hn::Sub(inner, Load(w + off, l));
        Store(hn::MulAdd(centred, scale, Load(factor + off, l)), factor + off, l);
      }
      const V centred = hn::Mul(hn::Sub(inner, w_relevant), scale);
      for (int h = 0; h < H; ++h) {
        const V g = hn::Mul(Load(relevant + off, h * P + p), centred);
        Store(g, batch.g_relevant + off, h * P + p);
      }
    }
    Store(loss, batch.loss + off, 0);

    for (int h = 0; h < H; ++h) {
      V row = hn::Zero(d);
      for (int l = 0; l < L; ++l) {
        V g = hn::Mul(Load(a, h * L + l), Load(factor + off, l));
        if (l < P) g = hn::Add(g, Load(batch.g_relevant + off, h * P + l));
        Store(g, a, h * L + l);
        row = hn::Add(row, g);
      }
      AddTo(row, batch.grad_b + off, h);
    }
  }
}

}  // namespace

ActivationKernels BSoftmaxKernels() { return {Forward, Backward, Placements}; }

}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
HWY_EXPORT(BSoftmaxKernels);

const Activation& b_softmax() {
  static const Activation activation(
      {.name = "b-softmax",
       .formula = "e^(chi_hl + b_h) / ((1/H) sum_h,l e^(chi_hl + b_h))",
       .trains_b = true,
       .trains_v = false},
      [] { return HWY_DYNAMIC_DISPATCH(BSoftmaxKernels)(); });
  return activation;
}

}  // namespace headflow
#endif  // HWY_ONCE
