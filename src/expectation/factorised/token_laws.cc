#include "expectation/factorised/token_laws.h"

#include "core/dual.h"
#include "core/index.h"

namespace headflow::factorised {

SignalComponents::SignalComponents(const GaussianMixture& prior) {
  const auto F = prior.mean().size();
  weight.push_back(1.0);
  mean.emplace_back(Vector::Zero(F));
  second.emplace_back(Matrix::Identity(F, F));
  for (const MixtureComponent& component : prior.components()) {
    weight.push_back(component.weight);
    mean.push_back(component.mean);
    second.emplace_back(Matrix::Identity(F, F));
    if (component.factor.cols() > 0) {
      second.back() += component.factor * component.factor.transpose();
      atoms = false;
    }
  }
}

template <class S>
void token_laws(const SignalComponents& signal, const Parameters<S>& point, TokenLaws<S>& laws) {
  const int H = point.H, F = point.F;
  laws.reset(H, signal.count());
  const S *m = point.m.data(), *R = point.R.data();
  for (int h = 0; h < H; ++h) {
    for (int k = 0; k <= h; ++k) {
      S orthogonal = 0.0;
      for (int j = 0; j < H; ++j) orthogonal += R[h * H + j] * R[k * H + j];
      for (int c = 0; c < signal.count(); ++c) {
        const bool plain = signal.atoms || c == 0;
        S sum = orthogonal;
        if (c > 0 && signal.atoms) {
          sum = laws.q(0, h, k);
        } else {
          for (int f = 0; f < F; ++f) {
            if (plain) {
              sum += m[h * F + f] * m[k * F + f];
            } else {
              for (int g = 0; g < F; ++g) {
                sum += m[h * F + f] * m[k * F + g] * signal.second[at(c)](f, g);
              }
            }
          }
        }
        laws.q(c, h, k) = laws.q(c, k, h) = sum;
      }
    }
    for (int c = 1; c < signal.count(); ++c) {
      for (int f = 0; f < F; ++f) {
        laws.mean(c, h) += m[h * F + f] * signal.mean[at(c)][f];
      }
    }
  }
}

template <class S>
void pull_back(const SignalComponents& signal, const Parameters<S>& point, const TokenLaws<S>& bar,
               Parameters<S>& grad) {
  const int H = point.H, F = point.F;
  std::vector<S> plain(at(H * H)), total(at(H * H)), row(at(F));
  for (int c = 0; c < signal.count(); ++c) {
    for (int i = 0; i < H * H; ++i) {
      const S& x = bar.Q[at(c * H * H + i)];
      total[at(i)] += x;
      if (signal.atoms || c == 0) plain[at(i)] += x;
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int k = 0; k < H; ++k) {
      const S p = 2.0 * plain[at(h * H + k)], t = 2.0 * total[at(h * H + k)];
      for (int f = 0; f < F; ++f) grad.m[at(h * F + f)] += p * point.m[at(k * F + f)];
      for (int j = 0; j < H; ++j) grad.R[at(h * H + j)] += t * point.R[at(k * H + j)];
    }
    for (int c = 1; c < signal.count(); ++c) {
      for (int f = 0; f < F; ++f) {
        grad.m[at(h * F + f)] += bar.mean(c, h) * signal.mean[at(c)][f];
      }
      if (signal.atoms) continue;
      for (S& x : row) x = 0.0;
      for (int k = 0; k < H; ++k) {
        for (int f = 0; f < F; ++f) row[at(f)] += 2.0 * bar.q(c, h, k) * point.m[at(k * F + f)];
      }
      for (int f = 0; f < F; ++f) {
        for (int g = 0; g < F; ++g) {
          grad.m[at(h * F + f)] += row[at(g)] * signal.second[at(c)](g, f);
        }
      }
    }
  }
}

template void token_laws(const SignalComponents&, const Parameters<double>&, TokenLaws<double>&);
template void token_laws(const SignalComponents&, const Parameters<Dual>&, TokenLaws<Dual>&);
template void pull_back(const SignalComponents&, const Parameters<double>&,
                        const TokenLaws<double>&, Parameters<double>&);
template void pull_back(const SignalComponents&, const Parameters<Dual>&, const TokenLaws<Dual>&,
                        Parameters<Dual>&);

}  // namespace headflow::factorised
