#include "expectation/factorised/node_density.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "expectation/factorised/kernels.h"

namespace headflow::factorised {
namespace {

std::vector<double> linspace(double from, double to, int n) {
  std::vector<double> x(at(n));
  for (int i = 0; i < n; ++i) x[at(i)] = from + (to - from) * i / (n - 1);
  return x;
}

void sort_by_score(Rule& rule) {
  std::vector<std::pair<double, double>> pairs;
  for (std::size_t i = 0; i < rule.x.size(); ++i) pairs.emplace_back(rule.x[i], rule.w[i]);
  std::ranges::sort(pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) std::tie(rule.x[i], rule.w[i]) = pairs[i];
}

struct Quantiles {
  double low, tenth, middle, high;
};

/// Where the survival function passes 1 - level, 9/10, 1/2 and level.
Quantiles quantiles(const NodeDensity& law, double level) {
  std::vector<double> s, d;
  Quantiles q{law.low(), 0, 0, law.high()};
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<double> u = linspace(q.low, q.high, 161);
    law(u, s, d);
    const auto first = [&](const auto& passed) {
      std::size_t i = 1;
      while (i + 1 < u.size() && !passed(s[i])) ++i;
      return i;
    };
    const std::size_t low = first([&](double x) { return 1 - x > level; });
    const std::size_t tenth = first([&](double x) { return x < 0.9; });
    const std::size_t middle = first([&](double x) { return x < 0.5; });
    const std::size_t high = first([&](double x) { return x < level; });
    q = {u[low - 1], u[tenth], (u[middle - 1] + u[middle]) / 2, u[high]};
  }
  return q;
}

}  // namespace

NodeDensity::NodeDensity(int tokens, Rule ordinary, Rule relevant, double sink)
    : L_(tokens),
      ordinary_{std::move(ordinary), {}},
      relevant_{std::move(relevant), {}},
      sink_(sink) {
  double smallest = HUGE_VAL, largest = -HUGE_VAL;
  deviation_ = 0;
  for (const Rule* law : {&ordinary_.rule, &relevant_.rule}) {
    double total = 0, mean = 0, square = 0;
    for (std::size_t i = 0; i < law->x.size(); ++i) {
      const double x = law->x[i], w = law->w[i];
      smallest = std::min(smallest, x);
      largest = std::max(largest, x);
      total += w;
      mean += w * x;
      square += w * x * x;
    }
    mean /= total;
    deviation_ = std::max(deviation_, std::sqrt(std::max(0.0, square / total - mean * mean)));
  }
  largest = std::max(largest, sink_);
  low_ = -largest - std::log(double(L_) + 1) - 60;
  high_ = -smallest + 5;
  moderate_ = std::max(std::abs(low_), std::abs(high_)) < kLargestLog;
  for (TokenLaw* law : {&ordinary_, &relevant_}) {
    if (moderate_) {
      for (double& x : law->rule.x) x = std::exp(x);
    } else {
      sort_by_score(law->rule);
      law->below.assign(1, 0.0);
      for (const double w : law->rule.w) law->below.push_back(law->below.back() + w);
    }
  }
}

void NodeDensity::mean_of_f(const TokenLaw& law, int n, int ld, const double* u,
                            double* const* out) const {
  const Rule& rule = law.rule;
  if (moderate_) {
    derivative_sum(Given::exponentials, rule.size(), rule.x.data(), rule.w.data(), ld, u, 2, out);
    return;
  }
  // f = 1 to e^(-45) before the window and 0 to e^(-e^7) behind it.
  constexpr double kBefore = 45, kBehind = 7;
  constexpr int kPart = 32;
  for (int j = 0; j < ld; j += kPart) {
    const auto [least, most] = std::minmax_element(u + j, u + std::min(n, j + kPart));
    const auto index = [&](double x) {
      return std::lower_bound(rule.x.begin(), rule.x.end(), x) - rule.x.begin();
    };
    const auto from = index(-kBefore - *most), to = index(kBehind - *least);
    double* part[2] = {out[0] + j, out[1] + j};
    const int size = std::min(kPart, ld - j);
    derivative_sum(Given::logs, static_cast<int>(to - from), rule.x.data() + from,
                   rule.w.data() + from, size, u + j, 2, part);
    for (int i = 0; i < size; ++i) part[0][i] += law.below[static_cast<std::size_t>(from)];
  }
}

void NodeDensity::operator()(const std::vector<double>& u, std::vector<double>& survival,
                             std::vector<double>& density) const {
  const int n = static_cast<int>(u.size()), ld = padded(n);
  std::vector<double> e(at(ld), 0.0), g0(at(ld)), k0(at(ld)), g1(at(ld)), k1(at(ld));
  for (int i = 0; i < n; ++i) e[at(i)] = moderate_ ? std::exp(u[at(i)]) : u[at(i)];
  double* out0[2] = {g0.data(), k0.data()};
  double* out1[2] = {g1.data(), k1.data()};
  mean_of_f(ordinary_, n, ld, e.data(), out0);
  mean_of_f(relevant_, n, ld, e.data(), out1);
  survival.resize(u.size());
  density.resize(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) {
    const double sink = std::min(std::exp(std::min(u[i] + sink_, kLargestLog)), kLargestExponent);
    const double others = std::exp((L_ - 2.0) * std::log(std::max(g0[i], 1e-300)) - sink);
    survival[i] = g1[i] * g0[i] * others;
    density[i] = (-k1[i] * g0[i] - (L_ - 1.0) * k0[i] * g1[i] + sink * g1[i] * g0[i]) * others;
  }
}

Rule gauss_nodes(const NodeDensity& law, int n, double digits) {
  const Quantiles q = quantiles(law, 0.01 * std::exp(-digits - 7));
  const double width = 2 + 0.5 * law.deviation();
  const std::vector<double> u = linspace(q.low, q.high, std::max(150, 16 * n));
  std::vector<double> s, density, y;
  law(u, s, density);
  for (double& x : density) x = std::max(x, 0.0) * (u[1] - u[0]);
  for (const double x : u) y.push_back(1 / (1 + std::exp(-(x - q.middle) / width)));
  Rule rule = gauss_of_measure(y, density, n);
  for (double& x : rule.x) {
    x = std::clamp(x, 1e-300, 1 - 1e-16);
    x = q.middle + width * std::log(x / (1 - x));
  }
  law(rule.x, s, density);
  for (std::size_t i = 0; i < rule.w.size(); ++i) rule.w[i] /= density[i];
  return rule;
}

Rule trapezoid_nodes(const NodeDensity& law, double digits, int most) {
  const Quantiles q = quantiles(law, 0.1 * std::exp(-digits));
  const double stretch = law.deviation() < 4 ? 0.3 : 0.0;
  const auto pull = [&](double t) { return stretch > 0 ? stretch * std::exp(q.tenth - t) : 0.0; };
  const auto u_of = [&](double t) { return t - pull(t); };
  const double step = std::min(1.05, 9.8 / digits);
  if (!((q.high - q.low) / step < most)) return {};
  double from = std::min(q.low, q.tenth);  // u_of(from) <= q.low
  for (double above = q.tenth; stretch > 0 && above - from > 0.01;) {
    const double half = (from + above) / 2;
    (u_of(half) > q.low ? above : from) = half;
  }
  if (!((q.high - from) / step < most)) return {};
  const int n = static_cast<int>(std::ceil((q.high - from) / step)) + 1;
  std::vector<double> u, survival, density;
  const std::vector<double> t = linspace(from, q.high, n);
  for (const double x : t) u.push_back(u_of(x));
  constexpr int kFew = 128;  // without room for gaps
  if (n > kFew) law(u, survival, density);
  const double least = 1e-3 * std::exp(-digits) / n;
  Rule rule;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double w = (q.high - from) / (n - 1) * (1 + pull(t[i]));
    if (n > kFew && w * density[i] < least) continue;
    rule.x.push_back(u[i]);
    rule.w.push_back(w);
  }
  return rule;
}

}  // namespace headflow::factorised
