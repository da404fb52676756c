#pragma once

// Nodes for the integrals over u = log s, where 1/Z = int e^(-s Z) ds.

#include "expectation/factorised/rules.h"

namespace headflow::factorised {

/// The law of U = log(Exp(1) / Z), Z the denominator of a head: a sum over tokens of e^score,
/// plus e^b with a sink. Its survival function is g1(u) g0(u)^(L-1) exp(-e^(u+b)). The integrands
/// in u resemble its density.
class NodeDensity {
 public:
  /// The laws of a token's score as discrete measures; `sink` is b, or minus infinity.
  NodeDensity(int tokens, Rule ordinary, Rule relevant, double sink);

  double low() const { return low_; }  ///< U is in [low, high] but for e^(-60)
  double high() const { return high_; }
  double deviation() const { return deviation_; }  ///< of the score, the larger of the two

  /// Survival function and density at each u.
  void operator()(const std::vector<double>& u, std::vector<double>& survival,
                  std::vector<double>& density) const;

 private:
  /// The law of one token's score: of e^score if all are moderate; else of the score, in order,
  /// with the weight below each.
  struct TokenLaw {
    Rule rule;
    std::vector<double> below;
  };
  /// g and g' at u (padded to ld): only scores within reach of -u take more than a look-up.
  void mean_of_f(const TokenLaw& law, int n, int ld, const double* u, double* const* out) const;

  int L_;
  TokenLaw ordinary_, relevant_;
  double sink_;
  double low_, high_, deviation_;
  bool moderate_;
};

/// Gauss rule of n nodes for int F(u) du, exact when F / density is a polynomial of low degree in
/// sigmoid((u - middle) / width): few nodes where the variances are moderate.
Rule gauss_nodes(const NodeDensity& law, int n, double digits);

/// Trapezoid rule, which converges exponentially whatever the shape: nearly collinear heads of
/// large variance make the integrand a ridge in (u, u'). Below the tenth percentile, where the
/// law is e^u, the variable is stretched, u = t - stretch e^(start - t). Nodes in gaps of the law
/// (components far apart) are left out. Empty if it takes more than `most` nodes, gaps included.
Rule trapezoid_nodes(const NodeDensity& law, double digits, int most);

}  // namespace headflow::factorised
