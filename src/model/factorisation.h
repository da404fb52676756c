#pragma once

// How the expectation over all tokens becomes one over a single token: what the factorised engine
// needs to know of an activation. A block is named where it plays a role; an empty name: none does.

#include <string>
#include <variant>

namespace headflow {

/// sigma_hl = v e^chi_hl / (e^b_h + sum_l e^chi_hl): each head is normalised by itself.
struct NormalisedHeads {
  std::string sink = {};   ///< the block b, one number a head; none: no sink
  std::string scale = {};  ///< the block v, one number; none: 1
};

/// sigma_hl = H e^(chi_hl + b_h) / sum_hl e^(chi_hl + b_h): all heads share one sum.
struct JointlyNormalised {
  std::string bias = {};  ///< the block b, one number a head
};

/// std::monostate: not known; sampled engines only.
using Factorisation = std::variant<std::monostate, NormalisedHeads, JointlyNormalised>;

}  // namespace headflow
