// Bayes-softmax: all heads share one normalisation,
//   sigma_hl = H u_hl,  u_hl = a_hl / sum_{h'l'} a_h'l',  a_hl = e^{chi_hl + b_h}.
// With c_l = sum_h a_hl the mean output is c_l / sum_l c_l, and with ubar_l = sum_h u_hl
//   d loss/d chi_hl = -u_hl (s_l - sum_l ubar_l s_l),   d loss/d b_h = sum_l of the same.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/b_softmax.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "core/simd_math-inl.h"
#include "model/activation.h"
#include "model/activations/lanes-inl.h"
#include "model/formula_activation.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
namespace {

void Forward(const Sizes& sizes, const double* b, double* u, double* mean) {
  const int H = sizes.H, L = sizes.L;
  for (int off = 0; off < kLanes; off += Step()) {
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

void Backward(const Sizes& sizes, const double* s, double* u, double* grad_b) {
  const int H = sizes.H, L = sizes.L;
  for (int off = 0; off < kLanes; off += Step()) {
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

/// Placements that share the exponentials of the noise. Only sums over heads enter the loss:
/// with c_l = sum_h a_hl, n_p the same for the relevant token, Z_p = n_p + sum_{l != p} c_l,
///   loss_p  = (1 - n_p/Z_p)^2 + q_p,       q_p = sum_{l != p} c_l^2 / Z_p^2,
///   inner_p = (1 - n_p/Z_p) n_p/Z_p - q_p,
///   g_hl    = a_hl sum_{p != l} (2/Z_p) (inner_p + c_l/Z_p) + g of the relevant,
/// so a placement costs O(H), not O(L H). Sums without one term are accumulated from both
/// ends, never by subtraction.
///
/// The steps, each for the lanes from `off` on, and their scratch space.
struct PlacementWork {
  const PlacementBatch& batch;
  int H, L, P;
  double* a;           // [H][L]  scores in bits; then a_hl; then their gradient
  double* g_relevant;  // [H][P]
  double* column;      // [L]  c_l; then the factor of a_hl in g_hl
  double* sums;        // [P]  sum of c before p; then sum_{p' > p} 2 inner/Z
  double* squares;     // [P]  the same of c^2;   then sum_{p' > p} 2/Z^2
  double* shift;       // [P]  2 inner_p / Z_p
  double* slope;       // [P]  2 / Z_p^2
  const double* bits;  // b_h in bits, one number a head

  explicit HWY_INLINE PlacementWork(const PlacementBatch& of)
      : batch(of),
        H(of.sizes.H),
        L(of.sizes.L),
        P(of.placements),
        a(of.chi),
        g_relevant(of.g_relevant),
        column(of.scratch),
        sums(At(column, L)),
        squares(At(sums, P)),
        shift(At(squares, P)),
        slope(At(shift, P)),
        bits(Bits(of)) {}

  /// Behind all the others.
  static HWY_INLINE double* Bits(const PlacementBatch& batch) {
    return At(batch.scratch, batch.sizes.L + 4 * batch.placements);
  }

  /// a_hl, c_l, and the sums of c and c^2 before each placement.
  HWY_INLINE void Exponentials(int off) const {
    V sum = hn::Zero(d), square = hn::Zero(d);
    for (int l = 0; l < L; ++l) {
      V c = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        const V value = simd::Exp2(d, hn::Add(Load(a + off, h * L + l), hn::Set(d, bits[h])));
        Store(value, a + off, h * L + l);
        c = hn::Add(c, value);
      }
      Store(c, column + off, l);
      if (l < P) {
        Store(sum, sums + off, l);
        Store(square, squares + off, l);
      }
      sum = hn::Add(sum, c);
      square = hn::MulAdd(c, c, square);
    }
  }

  struct Totals {
    V shift, slope;  // summed over placements
  };

  /// The loss, g of the relevant tokens, and what a placement adds to g of the others.
  HWY_INLINE Totals Losses(int off) const {
    V sum = hn::Zero(d), square = hn::Zero(d);
    for (int l = L - 1; l >= P; --l) {
      const V c = Load(column + off, l);
      sum = hn::Add(sum, c);
      square = hn::MulAdd(c, c, square);
    }
    V loss = Load(batch.loss + off, 0);
    Totals total{hn::Zero(d), hn::Zero(d)};
    for (int p = P - 1; p >= 0; --p) {
      V n = hn::Zero(d);
      for (int h = 0; h < H; ++h) {
        const V value = hn::Mul(Load(a + off, h * L + p), SignalFactor(batch, off, h * P + p));
        Store(value, g_relevant + off, h * P + p);
        n = hn::Add(n, value);
      }
      const V others = hn::Add(Load(sums + off, p), sum);
      const V other_squares = hn::Add(Load(squares + off, p), square);
      const V c = Load(column + off, p);
      sum = hn::Add(sum, c);
      square = hn::MulAdd(c, c, square);

      const V inverse = hn::Div(hn::Set(d, 1.0), hn::Add(others, n));
      const V weight = batch.weight ? Load(batch.weight + off, p) : hn::Set(d, 1.0);
      const V share = hn::Mul(n, inverse);
      const V w = hn::Mul(others, inverse);  // 1 - share without cancellation
      const V q = hn::Mul(hn::Mul(other_squares, inverse), inverse);
      loss = hn::MulAdd(hn::MulAdd(w, w, q), weight, loss);
      const V inner = hn::MulSub(share, w, q);
      const V scale = hn::Mul(hn::Add(weight, weight), inverse);
      const V p_shift = hn::Mul(inner, scale), p_slope = hn::Mul(scale, inverse);
      Store(p_shift, shift + off, p);
      Store(p_slope, slope + off, p);
      Store(total.shift, sums + off, p);
      Store(total.slope, squares + off, p);
      total.shift = hn::Add(total.shift, p_shift);
      total.slope = hn::Add(total.slope, p_slope);
      const V centred = hn::Mul(hn::Sub(inner, w), scale);
      for (int h = 0; h < H; ++h) {
        const V g = hn::Mul(Load(g_relevant + off, h * P + p), centred);
        Store(g, g_relevant + off, h * P + p);
      }
    }
    Store(loss, batch.loss + off, 0);
    return total;
  }

  /// g of all scores, summed over placements.
  HWY_INLINE void Gradient(int off, const Totals& total) const {
    V left_shift = hn::Zero(d), left_slope = hn::Zero(d);
    for (int l = 0; l < P; ++l) {
      const V others = hn::Add(left_shift, Load(sums + off, l));
      const V slopes = hn::Add(left_slope, Load(squares + off, l));
      left_shift = hn::Add(left_shift, Load(shift + off, l));
      left_slope = hn::Add(left_slope, Load(slope + off, l));
      Store(hn::MulAdd(slopes, Load(column + off, l), others), column + off, l);
    }
    for (int l = P; l < L; ++l) {
      Store(hn::MulAdd(total.slope, Load(column + off, l), total.shift), column + off, l);
    }
    for (int h = 0; h < H; ++h) {
      V row = hn::Zero(d);
      for (int l = 0; l < P; ++l) {
        const V g = hn::MulAdd(Load(a + off, h * L + l), Load(column + off, l),
                               Load(g_relevant + off, h * P + l));
        Store(g, a + off, h * L + l);
        row = hn::Add(row, g);
      }
      for (int l = P; l < L; ++l) {
        const V g = hn::Mul(Load(a + off, h * L + l), Load(column + off, l));
        Store(g, a + off, h * L + l);
        row = hn::Add(row, g);
      }
      AddTo(row, batch.grad + off, h);
    }
  }
};

void Placements(const PlacementBatch& batch) {
  double* bits = PlacementWork::Bits(batch);
  for (int h = 0; h < batch.sizes.H; ++h) bits[h] = batch.parameters[h] * std::numbers::log2e;
  const PlacementWork work(batch);
  for (int off = 0; off < kLanes; off += Step()) {
    work.Exponentials(off);
    work.Gradient(off, work.Losses(off));
  }
}

}  // namespace

void BSoftmaxForward(const Sizes& sizes, const double* b, double* u, double* mean) {
  Forward(sizes, b, u, mean);
}
void BSoftmaxBackward(const Sizes& sizes, const double* s, double* u, double* grad_b) {
  Backward(sizes, s, u, grad_b);
}
void BSoftmaxPlacements(const PlacementBatch& batch) { Placements(batch); }

}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
namespace {

HWY_EXPORT(BSoftmaxForward);
HWY_EXPORT(BSoftmaxBackward);
HWY_EXPORT(BSoftmaxPlacements);

struct BSoftmaxFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* b, S* sigma) const {
    using std::exp;
    double top = -HUGE_VAL;
    for (int h = 0; h < n.H; ++h) {
      for (int l = 0; l < n.L; ++l) top = std::max(top, value_of(chi[h * n.L + l] + b[h]));
    }
    S sum = 0.0;
    for (int h = 0; h < n.H; ++h) {
      for (int l = 0; l < n.L; ++l) sum += sigma[h * n.L + l] = exp(chi[h * n.L + l] + b[h] - top);
    }
    for (int i = 0; i < n.H * n.L; ++i) sigma[i] = static_cast<double>(n.H) * sigma[i] / sum;
  }
};

class BSoftmax final : public FormulaActivation<BSoftmaxFormula> {
 public:
  std::string_view name() const override { return "b-softmax"; }
  std::string_view formula() const override {
    return "e^(chi_hl + b_h) / ((1/H) sum_h,l e^(chi_hl + b_h))";
  }
  std::vector<BlockInfo> blocks() const override { return {{"b", "bias of a head", {Axis::head}}}; }

  void forward(const Sizes& sizes, const double* b, double* u, double* /*state*/,
               double* mean) const override {
    HWY_DYNAMIC_DISPATCH(BSoftmaxForward)(sizes, b, u, mean);
  }
  void backward(const Sizes& sizes, const double* /*b*/, const double* s, double* u,
                const double* /*state*/, double* grad) const override {
    HWY_DYNAMIC_DISPATCH(BSoftmaxBackward)(sizes, s, u, grad);
  }
  std::size_t state_groups(const Sizes& /*sizes*/) const override { return 0; }
  double largest_shift(const Blocks& b) const override { return b.values().cwiseAbs().maxCoeff(); }

  Factorisation factorisation() const override { return JointlyNormalised{"b"}; }
  /// A common shift of all biases.
  std::vector<Vector> symmetries(const BlockLayout& layout) const override {
    return {Vector::Ones(layout.size())};
  }
  /// A bias on its way to minus infinity (a head that is no longer used) leads nowhere else: e^b
  /// vanishes, and the loss with it changes no more.
  Vector travelled(const Blocks& b) const override {
    return (b.values().array() - b.values().maxCoeff()).exp().log1p();
  }
  bool silent(const Blocks& b, int head) const override {
    return b.values()[head] < b.values().maxCoeff() - 20;
  }
  std::optional<OriginConstants> origin_constants(const Blocks& equal) const override {
    const Sizes& n = equal.layout()->sizes();
    const double L = n.L, H = n.H;
    const auto [c1, c2] = origin_squares(n, 1 / L, 1 / L);
    return OriginConstants{c1, c2, (L - 1) / (H * L * L) * (1 - 2 / (H * L)),
                           2 * (L - 1) / (L * H * L * H * L), 2 * (L - 1) / (H * L * L)};
  }
  bool has_fast_placements() const override { return true; }

 protected:
  void fast_placements(const PlacementBatch& batch) const override {
    HWY_DYNAMIC_DISPATCH(BSoftmaxPlacements)(batch);
  }
};

}  // namespace

std::shared_ptr<const Activation> b_softmax() { return std::make_shared<const BSoftmax>(); }

}  // namespace headflow
#endif  // HWY_ONCE
