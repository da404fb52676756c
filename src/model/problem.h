#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/activation.h"
#include "model/frame.h"
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
  std::optional<Matrix> p;             ///< k*_f . k*_f' of the hidden directions; none: I
  PriorParameters prior_parameters;    ///< nu, mean, covariance, points, weights, ...
};

/// A validated problem: holds the activation and the prior. Cheap to copy. The prior, and every
/// Point that goes with the problem, are in the orthonormal frame of the hidden directions
/// (frame.h); at p = I that is no difference.
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
  const Frame& frame() const { return frame_; }
  const Matrix& p() const { return frame_.p(); }
  const Matrix& p_root() const { return frame_.root(); }

  /// The same problem for another number of heads.
  Problem with_heads(int heads) const;

  /// Remarks on the options that are no errors (a parameter the prior does not use).
  const std::vector<std::string>& notes() const { return notes_; }

  /// Throws OptionError if a point does not have this problem's shape or is not finite.
  void check(const Point& point) const;

 private:
  const Activation* activation_;
  std::shared_ptr<const Prior> prior_;
  int L_, H_, F_;
  double eta_;
  Frame frame_;
  std::vector<std::string> notes_;
};

}  // namespace headflow
