#pragma once

// Attention of each head on freshly drawn sequences.

#include <cstdint>
#include <vector>

#include "model/problem.h"

namespace headflow {

struct AttentionMap {
  int relevant = 0;  ///< number of the relevant token
  Vector theta;
  Matrix attention;  ///< H x L: sigma of each head on each token
  Vector mean;       ///< L: (1/H) sum over heads, what the output is made of
};

/// sigma(chi, parameters; h) of each head, for scores chi (H x L).
Matrix attention_of(const Problem& problem, const Point& point, const Matrix& scores);

/// Sequences number 0, 1, ... of a seed: chi*_l ~ N(delta theta, I), chi = m chi* + R xi.
std::vector<AttentionMap> attention_maps(const Problem& problem, const Point& point, int sequences,
                                         std::uint64_t seed);

}  // namespace headflow
