#pragma once

// Sums over many nodes n of weight_n F(s_n + u) for functions F that are analytic in |Im| < pi/2,
// as exp(-e^s) is: each node is spread over the 16 nearest points of a grid in s with the weights
// of Lagrange interpolation. With spacing 1/16 the interpolation is exact to 3e-15 max |F|.

#include <vector>

#include "theory/evidence.h"

namespace headflow {

class LogHistogram {
 public:
  /// Of s = log w from -600 to `largest`; s beyond counts as the end.
  explicit LogHistogram(double largest);

  /// Adds a node with a weight for relevant tokens and one for irrelevant ones.
  void add(double s, double relevant, double irrelevant);
  void add(const LogHistogram& other);
  /// To be called between the last `add` and the first `at`.
  void finish();

  EvidenceValues at(double u) const;

 private:
  double smallest_, largest_;
  std::vector<double> relevant_, irrelevant_;
  std::vector<std::size_t> used_;  ///< where one of them is not zero
};

}  // namespace headflow
