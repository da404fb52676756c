#pragma once

// A discretised loss: the nodes are frozen, the laws of the scores move.

#include <cstdint>
#include <memory>
#include <span>

#include "core/parallel.h"
#include "expectation/factorised/dual.h"
#include "expectation/factorised/token_laws.h"

namespace headflow::factorised {

/// Loss and its derivatives with respect to the laws, b and v.
template <class S>
struct LossAndBars {
  S loss = 0.0;
  TokenLaws<S> laws;
  std::vector<S> b;
  S v = 0.0;
};

class Quadrature {
 public:
  virtual ~Quadrature() = default;
  virtual void evaluate(const TokenLaws<double>& laws, const std::vector<double>& b, double v,
                        LossAndBars<double>& out) = 0;
  /// With tangents: Hessian-vector products.
  virtual void evaluate(const TokenLaws<Dual>& laws, const std::vector<Dual>& b, Dual v,
                        LossAndBars<Dual>& out) = 0;
  /// The largest variance of a score that the nodes do not see, because it has appeared in a
  /// direction that had none where they were placed. The loss errs by about as much.
  virtual double unseen_variance(const TokenLaws<double>& /*laws*/) const { return 0; }
  /// Values of the integrand in one evaluation.
  virtual std::int64_t nodes() const = 0;
};

/// What a quadrature is made for.
struct QuadratureProblem {
  int L, H;
  bool sink;  ///< softmax-1: e^b in the denominator, scale v
  const SignalComponents* signal;
  const Workers* workers;
};

/// Softmax and softmax-1 (heads.cc), B-softmax (joint.cc), near one point, with errors of about
/// e^(-digits). Null if that takes more nodes than `kMostNodes`.
std::unique_ptr<Quadrature> heads_quadrature(const QuadratureProblem& problem,
                                             const TokenLaws<double>& laws,
                                             const std::vector<double>& b, double digits);
std::unique_ptr<Quadrature> joint_quadrature(const QuadratureProblem& problem,
                                             const TokenLaws<double>& laws,
                                             const std::vector<double>& b, double digits);

}  // namespace headflow::factorised
