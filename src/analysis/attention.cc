#include "analysis/attention.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace headflow {

Matrix attention_of(const Problem& problem, const Point& point, const Matrix& scores) {
  Matrix out(scores.rows(), scores.cols());
  const Sizes sizes{static_cast<int>(scores.cols()), static_cast<int>(scores.rows()), problem.F()};
  problem.activation().attention(sizes, scores.data(), point.blocks.data(), out.data());
  return out;
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
