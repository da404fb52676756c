#pragma once

// What the loss depends on: the laws of the H scores of one token.
//   component 0       an ordinary token, N(0, Q_0), Q_0 = m m^T + R R^T
//   components 1..K   the relevant token, sum_k weight_k N(mu_k, Q_k) with
//                     mu_k = m mean_k, Q_k = m (I + Sigma_k) m^T + R R^T
// and the way back from derivatives with respect to Q_c and mu_c to those with respect to m and R.

#include <vector>

#include "core/index.h"
#include "model/point.h"
#include "model/prior.h"

namespace headflow::factorised {

/// The prior as the quadratures see it; component 0 stands for "no signal".
struct SignalComponents {
  explicit SignalComponents(const GaussianMixture& prior);

  int count() const { return static_cast<int>(weight.size()); }  ///< K + 1
  std::vector<double> weight;                                    ///< weight[0] = 1
  std::vector<Vector> mean;                                      ///< mean[0] = 0
  std::vector<Matrix> second;                                    ///< I + Sigma_c
  bool atoms = true;                                             ///< all Sigma_c = 0
};

/// Order parameters as flat arrays of a scalar type.
template <class S>
struct Parameters {
  int H = 0, F = 0;
  std::vector<S> m, R, blocks;  ///< H x F, H x H, and the activation's parameters
};

/// Laws of a token's scores, or derivatives with respect to them. Derivatives are in the symmetric
/// convention dE = sum_hh' Q(h,h') dQ(h,h').
template <class S>
struct TokenLaws {
  int H = 0, components = 0;
  std::vector<S> Q;   ///< [c][h][h']
  std::vector<S> mu;  ///< [c][h]

  void reset(int heads, int count) {
    H = heads;
    components = count;
    Q.assign(at(count * heads * heads), S(0.0));
    mu.assign(at(count * heads), S(0.0));
  }
  S& q(int c, int h, int k) { return Q[at((c * H + h) * H + k)]; }
  const S& q(int c, int h, int k) const { return Q[at((c * H + h) * H + k)]; }
  S& mean(int c, int h) { return mu[at(c * H + h)]; }
  const S& mean(int c, int h) const { return mu[at(c * H + h)]; }
};

template <class S>
void token_laws(const SignalComponents& signal, const Parameters<S>& point, TokenLaws<S>& laws);

/// Adds to grad.m and grad.R what `bar`, the derivative with respect to the laws, implies.
template <class S>
void pull_back(const SignalComponents& signal, const Parameters<S>& point, const TokenLaws<S>& bar,
               Parameters<S>& grad);

}  // namespace headflow::factorised
