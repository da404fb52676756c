// Heads that are normalised one by one: the terms of heads and pairs of heads (heads_terms.h) with
// the nodes of a plan.

#include "expectation/factorised/heads_hessian.h"
#include "expectation/factorised/heads_terms.h"

namespace headflow::factorised {
namespace {

constexpr int kMostCoordinates = 1000;  // of the laws, in a dense matrix

class HeadsQuadrature final : public LawQuadrature {
 public:
  HeadsQuadrature(const QuadratureProblem& problem, HeadsPlan plan, int blocks)
      : problem_(problem),
        plan_(std::move(plan)),
        plain_(problem_, plan_),
        coordinates_(*problem.signal, problem.H, blocks) {}

  void evaluate(const TokenLaws<double>& laws, const std::vector<double>& blocks, bool with_defect,
                LossAndBars<double>& out) override {
    plain_.evaluate(laws, blocks, with_defect, out);
  }
  void evaluate(const TokenLaws<Dual>& laws, const std::vector<Dual>& blocks,
                LossAndBars<Dual>& out) override {
    if (!dual_) dual_ = std::make_unique<Heads<Dual>>(problem_, plan_);
    dual_->evaluate(laws, blocks, false, out);
  }
  bool hessian(const Parameters<double>& point, const TokenLaws<double>& laws,
               Matrix& out) override {
    Vector gradient;
    Matrix second;
    heads_hessian(problem_, plan_, coordinates_, laws, point.blocks, plain_, gradient, second);
    out = coordinates_.hessian(point, gradient, second);
    return true;
  }
  double hessian_cost() const override {
    if (coordinates_.size() > kMostCoordinates) return HUGE_VAL;
    return heads_hessian_cost(problem_, coordinates_);
  }
  std::int64_t nodes() const override {
    return static_cast<std::int64_t>(plan_.cost(problem_.H, problem_.signal->count()));
  }

 private:
  QuadratureProblem problem_;
  HeadsPlan plan_;
  Heads<double> plain_;
  std::unique_ptr<Heads<Dual>> dual_;
  LawCoordinates coordinates_;
};

}  // namespace

std::unique_ptr<LawQuadrature> heads_quadrature(const QuadratureProblem& problem,
                                                const TokenLaws<double>& laws,
                                                const std::vector<double>& blocks, double digits) {
  const double* b = problem.roles.bias >= 0 ? blocks.data() + problem.roles.bias : nullptr;
  std::optional<HeadsPlan> plan = plan_heads(problem, laws, b, digits);
  if (!plan) return nullptr;
  return std::make_unique<HeadsQuadrature>(problem, std::move(*plan),
                                           static_cast<int>(blocks.size()));
}

}  // namespace headflow::factorised
