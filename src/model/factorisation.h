#pragma once

// How the expectation over all tokens becomes one over a single token: what the factorised engine
// needs to know of an activation. A block is named where it plays a role; an empty name: none does.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/sizes.h"

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

/// A function of one score, a(chi; parameters of the head), and its derivatives.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;
  /// Which parameters a head's function depends on.
  virtual std::vector<int> own_parameters(const Sizes& sizes, int head) const = 0;
  /// At `count` scores: a, a', a'', and the derivative with respect to each own parameter
  /// (by[j][i]).
  virtual void evaluate(const Sizes& sizes, int head, const double* parameters, int count,
                        const double* chi, double* a, double* a1, double* a2,
                        double* const* by) const = 0;
};

/// sigma_hl = a(chi_hl; h): nothing is normalised, each token stands for itself.
struct Elementwise {
  std::shared_ptr<const ElementFunction> function;
};

/// std::monostate: not known; sampled engines only.
using Factorisation = std::variant<std::monostate, NormalisedHeads, JointlyNormalised, Elementwise>;

}  // namespace headflow
