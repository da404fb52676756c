#include "analysis/attention.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace headflow {

Matrix attention_of(const Problem& problem, const Point& point, const Matrix& scores) {
  const auto H = scores.rows();
  Matrix out = scores;
  switch (problem.activation().info().factorisation) {
    case Factorisation::heads:
    case Factorisation::heads_with_sink: {
      const bool sink = problem.activation().info().trains_b;
      for (Eigen::Index h = 0; h < H; ++h) {
        const double largest = std::max(scores.row(h).maxCoeff(), sink ? point.b[h] : -HUGE_VAL);
        out.row(h) = (scores.row(h).array() - largest).exp();
        const double rest = sink ? std::exp(point.b[h] - largest) : 0.0;
        out.row(h) *= (sink ? point.v : 1.0) / (rest + out.row(h).sum());
      }
      return out;
    }
    case Factorisation::joint: {
      out.colwise() += point.b;
      out = (out.array() - out.maxCoeff()).exp();
      return out * (static_cast<double>(H) / out.sum());
    }
    case Factorisation::none: break;
  }
  throw Error(fmt::format("no attention map for {}", problem.activation().info().name));
}

std::vector<AttentionMap> attention_maps(const Problem& problem, const Point& point, int sequences,
                                         std::uint64_t seed) {
  const int L = problem.L(), H = problem.H(), F = problem.F();
  std::vector<AttentionMap> out;
  for (int i = 0; i < sequences; ++i) {
    RandomStream stream({seed, Purpose::attention, 0}, static_cast<std::uint64_t>(i));
    AttentionMap map;
    map.relevant = static_cast<int>(stream.uniform() * L);
    map.theta.resize(F);
    const double choice = stream.uniform();
    Vector normals(F);
    for (double& x : normals) x = stream.normal();
    problem.prior().sample(choice, normals.data(), map.theta.data());
    Matrix along(F, L), across(H, L);
    for (double& x : along.reshaped<Eigen::RowMajor>()) x = stream.normal();
    for (double& x : across.reshaped<Eigen::RowMajor>()) x = stream.normal();
    along.col(map.relevant) += map.theta;
    map.attention = attention_of(problem, point, point.m * along + point.R * across);
    map.mean = map.attention.colwise().mean();
    out.push_back(map);
  }
  return out;
}

}  // namespace headflow
