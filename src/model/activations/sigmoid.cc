// Sigmoid attention: every token is weighed by itself, and nothing is normalised. At the start
// b = -log L, so that at zero scores a head spends about as much in all as softmax does.

#include <cmath>

#include "model/elementwise_activation.h"

namespace headflow {
namespace {

struct SigmoidElement {
  template <class S>
  S operator()(const S& chi, const S* p) const {  // p: b_h, v
    using std::exp;
    const S t = chi + p[0];
    if (value_of(t) > 0) return p[1] / (1.0 + exp(-t));
    const S e = exp(t);
    return p[1] * e / (1.0 + e);
  }
};

class Sigmoid final : public ElementwiseActivation<SigmoidElement> {
 public:
  std::string_view name() const override { return "sigmoid"; }
  std::string_view formula() const override { return "v / (1 + e^(-chi_hl - b_h))"; }
  std::vector<BlockInfo> blocks() const override {
    return {{"b", "bias of a head", {Axis::head}, [](const Sizes& n) { return -std::log(n.L); }},
            {"v", "global scale", {}, [](const Sizes&) { return 1.0; }}};
  }
  void set_origin(Blocks& equal) const override {
    equal["v"][0] = (1 + std::exp(-equal["b"][0])) / equal.layout()->sizes().L;
  }
};

}  // namespace

std::shared_ptr<const Activation> sigmoid() { return std::make_shared<const Sigmoid>(); }

}  // namespace headflow
