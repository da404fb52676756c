#pragma once

#include <optional>

#include "core/workers.h"
#include "expectation/engine.h"
#include "expectation/factorised/token_path.h"

namespace headflow {

/// Loss, gradient and Hessian without sampling, at a cost that does not depend on L.
///
/// With 1/Z^a = (1/Gamma(a)) int_0^inf s^(a-1) e^(-s Z) ds the sum over tokens in a denominator
/// becomes a product of independent factors, one for each token, and the expectation over L (F+H)
/// normals becomes integrals over one or two variables of expectations over one token:
/// heads_terms.h has the formulas for softmax and softmax-1, joint.cc for B-softmax by tensor
/// products, token_path.cc by quasi-random nodes where these would be too many, elementwise.cc for
/// activations that normalise nothing.
///
/// Range: priors that are Gaussian mixtures (atoms included), L up to 10^6, scores of standard
/// deviation up to some tens (one head: some hundreds); beyond, the nodes are too many, and an
/// Error says so. Accuracy: the requested tolerance, from 1e-3 to 1e-9, as an absolute error of the
/// loss and of each entry of the gradient. The nodes are planned for it and checked against a
/// finer rule, and that one by sum rules that hold exactly (Quadrature's defect); where the
/// tolerance cannot be reached the reported error says so. Cost: for softmax O(H^2 K) small matrix
/// products with K components of the prior; at most kMostWork values of integrands in an
/// evaluation, twice as many to adapt, and about a gigabyte.
class Factorised final : public Engine {
 public:
  /// Throws OptionError if `why_not` has something to say.
  Factorised(const Problem& problem, const EngineOptions& options, const Context& context = {});

  /// Empty if the engine can do this problem, else the reason.
  static std::string why_not(const Problem& problem);

  std::string_view name() const override { return "factorised"; }
  ErrorKind error_kind() const override { return ErrorKind::refinement; }
  double tolerance() const override { return tolerance_; }
  bool has_second_moment() const override { return false; }
  /// Values of integrands, in the plan for the last point adapted to.
  std::int64_t samples() const override { return nodes_ ? nodes_->nodes() : 0; }

  void evaluate(const Point& point, const Request& request, Evaluation& out) override;
  void adapt(const Point& point) override;
  bool follow(const Point& point) override;
  /// By automatic differentiation of the gradient.
  void hessian_product(const Point& point, const Point& direction, Point& out) override;
  bool hessian(const Point& point, Matrix& out, Matrix* change = nullptr) override;
  WholeHessian whole_hessian() const override {
    return nodes_ ? nodes_->whole_hessian() : WholeHessian::none;
  }
  bool quasi_random() const override { return nodes_ && nodes_->quasi_random(); }
  bool has_cheap_products() const override { return joint_; }
  bool cost_may_explode() const override { return joint_; }

 private:
  /// Null if it takes too much work, that of earlier plans for the same point included.
  std::unique_ptr<factorised::Quadrature> plan(const factorised::Parameters<double>& point,
                                               double digits) const;
  /// Replaces the nodes and the finer ones; leaves both if these would be too many.
  bool plan_both(double digits);
  void place_nodes(const Point& point);
  double adapt_laws();
  void adapt_path(double error_by_laws);
  bool still_serve(const factorised::Parameters<double>& point);
  std::unique_ptr<factorised::Quadrature> path(int log2_nodes) const;
  /// Leaves the defect in result_, if it is asked for.
  void run(factorised::Quadrature& quadrature, const factorised::Parameters<double>& point,
           bool with_defect, double& loss, Point& grad);
  /// What a defect of one may change in an entry of the gradient.
  double gradient_scale(const factorised::Parameters<double>& point) const;
  /// What is compared when nodes are planned: also the derivatives with respect to the
  /// covariances, which the gradient does not show where m and R vanish but the Hessian does.
  struct Values {
    double loss;
    Point grad;
    std::vector<double> bars;
    double defect;
  };
  Values values(factorised::Quadrature& quadrature, bool with_defect);
  static double difference(const Values& a, const Values& b);
  /// Takes rules with fewer digits if they, too, meet the tolerance; the best known values are
  /// given.
  bool coarsen(double digits, const Values& best);
  void ensure_adapted(const Point& point);

  double tolerance_;
  bool joint_;                                      // all heads share one normalisation
  std::shared_ptr<const ElementFunction> element_;  // null unless nothing is normalised
  double digits_ = 0;  // that were enough on the way here; 0: not known
  double spent_ = 0;   // on the plans for the point that is being adapted to
  Workers workers_;
  factorised::SignalComponents signal_;
  factorised::QuadratureProblem shape_;
  std::unique_ptr<factorised::Quadrature> nodes_, finer_;
  factorised::Parameters<double> here_;
  factorised::TokenLaws<double> laws_, adapted_laws_;
  std::vector<double> adapted_blocks_;
  factorised::LossAndGradient<double> result_;
  std::shared_ptr<factorised::TokenNodes> path_nodes_;
  int path_size_ = 0;  // log2 of the nodes that were enough
  bool on_path_ = false;
};

}  // namespace headflow
