// A quadrature over laws as one over points: laws in, derivatives pulled back.

#include "expectation/factorised/quadrature.h"

namespace headflow::factorised {
namespace {

template <class S>
void to_gradient(const SignalComponents& signal, const Parameters<S>& point,
                 const LossAndBars<S>& bars, LossAndGradient<S>& out) {
  out.loss = bars.loss;
  out.defect = bars.defect;
  out.bars = bars.laws.Q;
  out.grad.m.assign(point.m.size(), S(0.0));
  out.grad.R.assign(point.R.size(), S(0.0));
  out.grad.blocks = bars.blocks;
  pull_back(signal, point, bars.laws, out.grad);
}

class ByLaws final : public Quadrature {
 public:
  ByLaws(const QuadratureProblem& problem, std::unique_ptr<LawQuadrature> quadrature)
      : signal_(*problem.signal),
        directions_(problem.H * (problem.H + static_cast<double>(signal_.mean[0].size()))),
        quadrature_(std::move(quadrature)) {}

  void evaluate(const Parameters<double>& point, bool with_defect,
                LossAndGradient<double>& out) override {
    token_laws(signal_, point, laws_);
    quadrature_->evaluate(laws_, point.blocks, with_defect, bars_);
    to_gradient(signal_, point, bars_, out);
  }
  void evaluate(const Parameters<Dual>& point, LossAndGradient<Dual>& out) override {
    TokenLaws<Dual> laws;
    token_laws(signal_, point, laws);
    LossAndBars<Dual> bars;
    quadrature_->evaluate(laws, point.blocks, bars);
    to_gradient(signal_, point, bars, out);
  }
  bool has_tangents() const override { return quadrature_->has_tangents(); }
  bool hessian(const Parameters<double>& point, Matrix& out) override {
    token_laws(signal_, point, laws_);
    return quadrature_->hessian(point, laws_, out);
  }
  /// Where it takes less than differences along every direction.
  WholeHessian whole_hessian() const override {
    return quadrature_->hessian_cost() < directions_ ? WholeHessian::differences
                                                     : WholeHessian::none;
  }
  double unseen_variance(const Parameters<double>& point) const override {
    if (quadrature_->sees_all()) return 0;
    TokenLaws<double> laws;
    token_laws(signal_, point, laws);
    return quadrature_->unseen_variance(laws);
  }
  std::int64_t nodes() const override { return quadrature_->nodes(); }

 private:
  const SignalComponents& signal_;
  double directions_;
  std::unique_ptr<LawQuadrature> quadrature_;
  TokenLaws<double> laws_;
  LossAndBars<double> bars_;
};

}  // namespace

std::unique_ptr<Quadrature> by_laws(const QuadratureProblem& problem,
                                    std::unique_ptr<LawQuadrature> laws) {
  return laws ? std::make_unique<ByLaws>(problem, std::move(laws)) : nullptr;
}

}  // namespace headflow::factorised
