// A head may spend less than one (its sink b_h takes the rest); v rescales all heads.

#include <algorithm>
#include <cmath>

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/softmax_1.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "model/activations/per_head-inl.h"
#include "model/formula_activation.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
void Softmax1Forward(const Sizes& sizes, const double* parameters, double* u, double* state,
                     double* mean) {
  PerHead<true>::Forward(sizes, parameters, u, state, mean);
}
void Softmax1Backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                      const double* state, double* grad) {
  PerHead<true>::Backward(sizes, parameters, s, u, state, grad);
}
void Softmax1Placements(const PlacementBatch& batch) { PerHead<true>::AnyPlacements(batch); }
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
namespace {

HWY_EXPORT(Softmax1Forward);
HWY_EXPORT(Softmax1Backward);
HWY_EXPORT(Softmax1Placements);

struct Softmax1Formula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* parameters, S* sigma) const {
    using std::exp;
    const S &v = parameters[n.H], *b = parameters;
    for (int h = 0; h < n.H; ++h, chi += n.L, sigma += n.L) {
      double top = value_of(b[h]);
      for (int l = 0; l < n.L; ++l) top = std::max(top, value_of(chi[l]));
      S sum = exp(b[h] - top);
      for (int l = 0; l < n.L; ++l) sum += sigma[l] = exp(chi[l] - top);
      for (int l = 0; l < n.L; ++l) sigma[l] = v * sigma[l] / sum;
    }
  }
};

class Softmax1 final : public FormulaActivation<Softmax1Formula> {
 public:
  std::string_view name() const override { return "softmax-1"; }
  std::string_view formula() const override { return "v e^chi_hl / (e^b_h + sum_l e^chi_hl)"; }
  std::vector<BlockInfo> blocks() const override {
    return {{"b", "bias of a head", {Axis::head}},
            {"v", "global scale", {}, [](const Sizes&) { return 1.0; }}};
  }

  void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
               double* mean) const override {
    HWY_DYNAMIC_DISPATCH(Softmax1Forward)(sizes, parameters, u, state, mean);
  }
  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* state, double* grad) const override {
    HWY_DYNAMIC_DISPATCH(Softmax1Backward)(sizes, parameters, s, u, state, grad);
  }
  std::size_t state_groups(const Sizes& sizes) const override {
    return static_cast<std::size_t>(sizes.H);
  }
  double largest_shift(const Blocks& parameters) const override {
    return parameters["b"].cwiseAbs().maxCoeff();
  }

  Factorisation factorisation() const override { return NormalisedHeads{"b", "v"}; }
  /// A sink on its way to minus infinity leads nowhere else: e^b vanishes.
  Vector travelled(const Blocks& parameters) const override {
    Blocks out = parameters;
    out["b"] = out["b"].array().exp().log1p();
    return out.values();
  }
  void set_origin(Blocks& equal) const override {
    const double L = equal.layout()->sizes().L;
    equal["v"][0] = (L + std::exp(equal["b"][0])) / L;
  }
  std::optional<OriginConstants> origin_constants(const Blocks& equal) const override {
    const Sizes& n = equal.layout()->sizes();
    const double L = n.L, H = n.H, Z = L + std::exp(equal["b"][0]), v = Z / L;
    const auto [c1, c2] = origin_squares(n, v / Z, 1 / Z);
    return OriginConstants{c1, c2, v * (L - 1) / (H * L * Z) * (1 - 2 / Z), 0,
                           2 * v * (L - 1) / (H * L * Z)};
  }
  bool has_fast_placements() const override { return true; }

 protected:
  void fast_placements(const PlacementBatch& batch) const override {
    HWY_DYNAMIC_DISPATCH(Softmax1Placements)(batch);
  }
};

}  // namespace

std::shared_ptr<const Activation> softmax_1() { return std::make_shared<const Softmax1>(); }

}  // namespace headflow
#endif  // HWY_ONCE
