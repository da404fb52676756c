#pragma once

// A discretised loss: the nodes are frozen, the laws of the scores move.

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "core/dual.h"
#include "core/workers.h"
#include "expectation/engine.h"
#include "expectation/factorised/token_laws.h"
#include "model/factorisation.h"

namespace headflow::factorised {

/// Loss and its derivatives with respect to the laws and the activation's parameters.
template <class S>
struct LossAndBars {
  S loss = 0.0;
  TokenLaws<S> laws;
  std::vector<S> blocks;
  /// How far exact sum rules (the weights of a head, and of a pair of heads, sum to one) are
  /// missed, in units of the loss; only if asked for. It sees nodes that are in the wrong place,
  /// where the difference to another rule that fails alike does not.
  double defect = 0;
};

/// A loss of the laws of the scores.
class LawQuadrature {
 public:
  virtual ~LawQuadrature() = default;
  virtual void evaluate(const TokenLaws<double>& laws, const std::vector<double>& blocks,
                        bool with_defect, LossAndBars<double>& out) = 0;
  /// With tangents: Hessian-vector products.
  virtual void evaluate(const TokenLaws<Dual>& laws, const std::vector<Dual>& blocks,
                        LossAndBars<Dual>& out) = 0;
  /// False if the second one of these is beyond it.
  virtual bool has_tangents() const { return true; }
  /// All second derivatives, in the order m, R, parameters, by differences; false if it cannot.
  virtual bool hessian(const Parameters<double>& /*point*/, const TokenLaws<double>& /*laws*/,
                       Matrix& /*out*/) {
    return false;
  }
  /// As many gradients take as long as all second derivatives; infinite if it cannot.
  virtual double hessian_cost() const { return HUGE_VAL; }
  /// The largest variance of a score that the nodes do not see, because it has appeared in a
  /// direction that had none where they were placed. The loss errs by about as much.
  virtual double unseen_variance(const TokenLaws<double>& /*laws*/) const { return 0; }
  /// False if there may be such a variance.
  virtual bool sees_all() const { return true; }
  /// Values of integrands in one evaluation, tables included: what it costs.
  virtual std::int64_t nodes() const = 0;
};

/// Loss and gradient.
template <class S>
struct LossAndGradient {
  S loss = 0.0;
  Parameters<S> grad;
  /// Derivatives with respect to the covariances of the laws, where they are known on the way: the
  /// gradient does not show them where m and R vanish, but the Hessian does.
  std::vector<S> bars;
  double defect = 0;  ///< as of LossAndBars
};

/// The loss of a point.
class Quadrature {
 public:
  virtual ~Quadrature() = default;
  virtual void evaluate(const Parameters<double>& point, bool with_defect,
                        LossAndGradient<double>& out) = 0;
  /// With tangents; of the gradient those matter only.
  virtual void evaluate(const Parameters<Dual>& point, LossAndGradient<Dual>& out) = 0;
  virtual bool has_tangents() const { return true; }
  /// All second derivatives at once, in the order m, R, blocks; false if it cannot.
  virtual bool hessian(const Parameters<double>& /*point*/, Matrix& /*out*/) { return false; }
  virtual WholeHessian whole_hessian() const { return WholeHessian::none; }
  /// True if the nodes are quasi-random.
  virtual bool quasi_random() const { return false; }
  virtual double unseen_variance(const Parameters<double>& /*point*/) const { return 0; }
  /// Tells where the point has moved to; the loss there does not change by that.
  virtual void recentre(const Parameters<double>& /*point*/) {}
  virtual std::int64_t nodes() const = 0;
};

/// Values of integrands in an evaluation, a second or two.
inline constexpr double kMostWork = 4e8;

/// Where among the activation's parameters those are that play a role; -1: none.
struct Roles {
  int bias = -1;   ///< H numbers: of the sinks, or added to the scores
  int scale = -1;  ///< one number: v
};

/// What a quadrature is made for.
struct QuadratureProblem {
  int L, H;
  Roles roles;
  const SignalComponents* signal;
  const Workers* workers;
  double most_work = kMostWork;  ///< values of integrands in one evaluation
};

/// By way of the laws; null for null.
std::unique_ptr<Quadrature> by_laws(const QuadratureProblem& problem,
                                    std::unique_ptr<LawQuadrature> laws);

/// Heads that are normalised by themselves (heads.cc) or jointly (joint.cc), near one point, with
/// errors of about e^(-digits). Null if that takes more work than the problem allows, or
/// too much memory.
std::unique_ptr<LawQuadrature> heads_quadrature(const QuadratureProblem& problem,
                                                const TokenLaws<double>& laws,
                                                const std::vector<double>& blocks, double digits);
std::unique_ptr<LawQuadrature> joint_quadrature(const QuadratureProblem& problem,
                                                const TokenLaws<double>& laws,
                                                const std::vector<double>& blocks, double digits);

/// Scores that are not normalised at all (elementwise.cc).
std::unique_ptr<LawQuadrature> elementwise_quadrature(
    const QuadratureProblem& problem, const std::shared_ptr<const ElementFunction>& function,
    const TokenLaws<double>& laws, double digits);

}  // namespace headflow::factorised
