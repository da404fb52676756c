#include "expectation/factorised/score_nodes.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "expectation/factorised/kernels.h"
#include "expectation/factorised/rules.h"

namespace headflow::factorised {
namespace {

/// Weighted points while they are collected, one after the other.
struct Points {
  int dimensions;
  std::vector<double> x, w;
  std::int64_t count() const { return static_cast<std::int64_t>(w.size()); }
};

/// How many nodes `tensor` keeps, nearly: sums of -log(weight) on a grid.
double tensor_size(const std::vector<Rule>& rules, double least) {
  constexpr double kCell = 0.2;
  const auto cells = static_cast<std::size_t>(-std::log(least) / kCell) + 1;
  std::vector<double> count(cells, 0.0);
  count[0] = 1;
  for (const Rule& rule : rules) {
    const double largest = *std::max_element(rule.w.begin(), rule.w.end());
    std::vector<double> next(cells, 0.0);
    for (const double w : rule.w) {
      if (w < least * largest) continue;
      const auto shift = at(std::lround(-std::log(w / largest) / kCell));
      for (std::size_t i = 0; i + shift < cells; ++i) next[i + shift] += count[i];
    }
    count = std::move(next);
  }
  double sum = 0;
  for (const double c : count) sum += c;
  return sum;
}

/// Tensor product of rules without the corners whose weight is below `least` times the largest.
Points tensor(const std::vector<Rule>& rules, double least) {
  for (const Rule& rule : rules) least *= *std::max_element(rule.w.begin(), rule.w.end());
  double rest = 1;  // the largest factor that the directions to come can still give
  for (const Rule& rule : rules) rest *= *std::max_element(rule.w.begin(), rule.w.end());
  Points points{0, {}, {1.0}};
  for (const Rule& rule : rules) {
    rest /= *std::max_element(rule.w.begin(), rule.w.end());
    Points next{points.dimensions + 1, {}, {}};
    for (std::int64_t i = 0; i < points.count(); ++i) {
      const double* x = points.x.data() + i * points.dimensions;
      for (int k = 0; k < rule.size(); ++k) {
        const double w = points.w[at(i)] * rule.w[at(k)];
        if (w * rest < least) continue;
        next.x.insert(next.x.end(), x, x + points.dimensions);
        next.x.push_back(rule.x[at(k)]);
        next.w.push_back(w);
      }
    }
    points = std::move(next);
  }
  double total = 0;
  for (const double w : points.w) total += w;
  for (double& w : points.w) w /= total;
  return points;
}

/// Stroud's cubatures for N(0, I_d) of degree 3 (2 d points) and 5 (2 d^2 + 1 points).
Points stroud(int dimensions, int degree) {
  const double n = dimensions;
  Points points{dimensions, {}, {}};
  const auto add = [&](double weight, int i, double a, int j = -1, double b = 0) {
    std::vector<double> x(at(dimensions), 0.0);
    if (i >= 0) x[at(i)] = a;
    if (j >= 0) x[at(j)] = b;
    points.x.insert(points.x.end(), x.begin(), x.end());
    points.w.push_back(weight);
  };
  if (degree == 3) {
    for (int i = 0; i < dimensions; ++i) {
      for (const double sign : {-1.0, 1.0}) add(0.5 / n, i, sign * std::sqrt(n));
    }
    return points;
  }
  add(2 / (n + 2), -1, 0);
  const double axis = std::sqrt(n + 2), diagonal = std::sqrt((n + 2) / 2);
  for (int i = 0; i < dimensions; ++i) {
    for (const double sign : {-1.0, 1.0}) {
      add((4 - n) / (2 * (n + 2) * (n + 2)), i, sign * axis);
      for (int j = 0; j < i; ++j) {
        for (const double other : {-1.0, 1.0}) {
          add(1 / ((n + 2) * (n + 2)), i, sign * diagonal, j, other * diagonal);
        }
      }
    }
  }
  return points;
}

NodeSet to_nodes(const Points& points) {
  NodeSet out;
  out.dimensions = points.dimensions;
  out.count = points.count();
  out.stride = (out.count + 7) / 8 * 8;
  out.zeta.assign(at(out.dimensions) * at(out.stride), 0.0);
  out.weight.assign(at(out.stride), 0.0);
  for (std::int64_t i = 0; i < out.count; ++i) {
    out.weight[at(i)] = points.w[at(i)];
    for (int j = 0; j < out.dimensions; ++j) {
      out.zeta[at(j * out.stride + i)] = points.x[at(i * out.dimensions + j)];
    }
  }
  return out;
}

}  // namespace

NodeSet score_nodes(const Vector& scales, double digits, std::int64_t most) {
  const int r = static_cast<int>(scales.size());
  std::vector<Rule> rules;
  for (const double s : scales) {
    if (!(normal_rule_size(s, digits) < static_cast<double>(most))) return {};
    rules.push_back(normal_rule(s, digits));
  }

  // The first `large` directions as a tensor product, the others together by a cubature.
  double best = HUGE_VAL;
  int best_large = r, best_degree = 0;
  double product = 1;
  for (int large = 0; large <= r; ++large) {
    const int d = r - large;
    const double s = d > 0 ? scales[large] : 0.0;
    const auto consider = [&](double extra, int degree) {
      if (product * extra < best) {
        best = product * extra;
        best_large = large;
        best_degree = degree;
      }
    };
    if (d == 0) consider(1, 0);
    if (d > 1 && std::pow(s, 4) * d < std::exp(-digits)) consider(2 * d, 3);
    if (d > 1 && std::pow(s, 6) * d < std::exp(-digits)) consider(2 * d * d + 1, 5);
    if (large < r) product *= rules[at(large)].size();
  }
  rules.resize(at(best_large));
  // The mass of N(0, I_r) outside radius x is about x^(r-2) e^(-x^2/2).
  const double least =
      std::exp(-digits - 1 - 0.5 * std::max(0, best_large - 2) * std::log(2 * digits));
  const double cubature = best_degree == 0   ? 1
                          : best_degree == 3 ? 2 * (r - best_large)
                                             : 2 * (r - best_large) * (r - best_large) + 1;
  const double kept = cubature * tensor_size(rules, least);
  if (kept > static_cast<double>(most)) return {};
  Points points = tensor(rules, least);
  if (best_large < r) {
    const Points small = stroud(r - best_large, best_degree);
    Points both{r, {}, {}};
    for (std::int64_t i = 0; i < points.count(); ++i) {
      for (std::int64_t k = 0; k < small.count(); ++k) {
        const double *x = points.x.data() + i * points.dimensions,
                     *y = small.x.data() + k * small.dimensions;
        both.x.insert(both.x.end(), x, x + points.dimensions);
        both.x.insert(both.x.end(), y, y + small.dimensions);
        both.w.push_back(points.w[at(i)] * small.w[at(k)]);
      }
    }
    points = std::move(both);
  }
  return to_nodes(points);
}

}  // namespace headflow::factorised
