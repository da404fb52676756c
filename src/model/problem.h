#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/activation.h"
#include "model/point.h"
#include "model/prior.h"

namespace headflow {

/// Limits that keep index arithmetic and small buffers simple; far beyond the model's use.
inline constexpr int kMostTokens = 1'000'000;
inline constexpr int kMostHeads = 256;
inline constexpr int kMostFeatures = 256;

/// The [problem] table of a configuration: what is trained on what.
struct ProblemOptions {
  std::string activation = "softmax";  ///< see activations()
  std::string prior = "flipping";      ///< see priors()
  int tokens = 4;                      ///< L
  int heads = 2;                       ///< H
  int features = 2;                    ///< F
  double eta = 1.0;                    ///< initial norm of a head, k_h ~ N(0, eta^2 I/D)
  PriorParameters prior_parameters;    ///< nu, mean, covariance, points, weights, ...
};

/// A validated problem: holds the activation and the prior. Cheap to copy.
class Problem {
 public:
  /// Throws OptionError naming the first key that breaks a rule.
  explicit Problem(const ProblemOptions& options);

  const Activation& activation() const { return *activation_; }
  const Prior& prior() const { return *prior_; }
  int L() const { return L_; }
  int H() const { return H_; }
  int F() const { return F_; }
  double eta() const { return eta_; }

  /// Remarks on the options that are no errors (a parameter the prior does not use).
  const std::vector<std::string>& notes() const { return notes_; }

  /// Throws OptionError if a point does not have this problem's shape or is not finite.
  void check(const Point& point) const;

 private:
  const Activation* activation_;
  std::shared_ptr<const Prior> prior_;
  int L_, H_, F_;
  double eta_;
  std::vector<std::string> notes_;
};

}  // namespace headflow
