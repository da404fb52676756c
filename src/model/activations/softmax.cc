// The standard attention weights: every head spends a total of one.

#include <algorithm>
#include <cmath>

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/activations/softmax.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include "model/activations/per_head-inl.h"
#include "model/formula_activation.h"

HWY_BEFORE_NAMESPACE();
namespace headflow::HWY_NAMESPACE {
void SoftmaxForward(const Sizes& sizes, const double* parameters, double* u, double* state,
                    double* mean) {
  PerHead<false>::Forward(sizes, parameters, u, state, mean);
}
void SoftmaxBackward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                     const double* state, double* grad) {
  PerHead<false>::Backward(sizes, parameters, s, u, state, grad);
}
void SoftmaxPlacements(const PlacementBatch& batch) { PerHead<false>::AnyPlacements(batch); }
}  // namespace headflow::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headflow {
namespace {

HWY_EXPORT(SoftmaxForward);
HWY_EXPORT(SoftmaxBackward);
HWY_EXPORT(SoftmaxPlacements);

struct SoftmaxFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* /*parameters*/, S* sigma) const {
    using std::exp;
    for (int h = 0; h < n.H; ++h, chi += n.L, sigma += n.L) {
      double top = value_of(chi[0]);
      for (int l = 1; l < n.L; ++l) top = std::max(top, value_of(chi[l]));
      S sum = 0.0;
      for (int l = 0; l < n.L; ++l) sum += sigma[l] = exp(chi[l] - top);
      for (int l = 0; l < n.L; ++l) sigma[l] /= sum;
    }
  }
};

class Softmax final : public FormulaActivation<SoftmaxFormula> {
 public:
  std::string_view name() const override { return "softmax"; }
  std::string_view formula() const override { return "e^chi_hl / sum_l e^chi_hl"; }

  void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
               double* mean) const override {
    HWY_DYNAMIC_DISPATCH(SoftmaxForward)(sizes, parameters, u, state, mean);
  }
  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* state, double* grad) const override {
    HWY_DYNAMIC_DISPATCH(SoftmaxBackward)(sizes, parameters, s, u, state, grad);
  }
  std::size_t state_groups(const Sizes& /*sizes*/) const override { return 0; }

  Factorisation factorisation() const override { return NormalisedHeads{}; }
  std::optional<OriginConstants> origin_constants(const Blocks& equal) const override {
    const Sizes& n = equal.layout()->sizes();
    const double L = n.L, H = n.H;
    const auto [c1, c2] = origin_squares(n, 1 / L, 1 / L);
    return OriginConstants{c1, c2, (L - 1) / (H * L * L) * (1 - 2 / L), 0,
                           2 * (L - 1) / (H * L * L)};
  }
  bool has_fast_placements() const override { return true; }

 protected:
  void fast_placements(const PlacementBatch& batch) const override {
    HWY_DYNAMIC_DISPATCH(SoftmaxPlacements)(batch);
  }
};

}  // namespace

std::shared_ptr<const Activation> softmax() { return std::make_shared<const Softmax>(); }

}  // namespace headflow
#endif  // HWY_ONCE
