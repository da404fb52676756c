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

/// A law that is no name of the registry.
struct NamedPrior {
  std::string name;
  std::shared_ptr<const Prior> prior;
};

/// The [problem] table of a configuration: what is trained on what.
struct ProblemOptions {
  std::string activation = "softmax";  ///< see activations()
  std::string prior = "flipping";      ///< see priors()
  int tokens = 4;                      ///< L
  int heads = 2;                       ///< H
  int features = 2;                    ///< F
  double eta = 1.0;                    ///< initial norm of a head, k_h ~ N(0, eta^2 I/D)
  std::optional<Matrix> p = {};        ///< k*_f . k*_f' of the hidden directions; none: I
  /// What is trained: m, R and blocks of the activation; none: all there is.
  std::optional<std::vector<std::string>> train = {};
  PriorParameters prior_parameters = {};  ///< nu, mean, covariance, points, weights, ...
  // What has no place in the registries: taken where `activation` and `prior` are their names.
  // A configuration's text has no more of them than these names.
  std::shared_ptr<const Activation> own_activation = nullptr;
  NamedPrior own_prior = {};

  /// The activation and whether the prior is one of one's own. Throws OptionError for a name that
  /// is not known.
  std::shared_ptr<const Activation> find_activation() const;
  bool has_own_prior() const { return own_prior.prior && own_prior.name == prior; }
};

/// A validated problem: holds the activation and the prior. Cheap to copy. The prior, and every
/// Point that goes with the problem, are in the orthonormal frame of the hidden directions
/// (frame.h); at p = I that is no difference.
class Problem {
 public:
  /// Activation and prior by name. Throws OptionError naming the first key that breaks a rule.
  explicit Problem(const ProblemOptions& options);
  /// Any activation and prior; the other options (not their names and parameters) as above, but for
  /// the number of features, which is the prior's.
  Problem(std::shared_ptr<const Activation> activation, std::shared_ptr<const Prior> prior,
          const ProblemOptions& options);

  const Activation& activation() const { return *activation_; }
  const Prior& prior() const { return *prior_; }
  const Sizes& sizes() const { return sizes_; }
  int L() const { return sizes_.L; }
  int H() const { return sizes_.H; }
  int F() const { return sizes_.F; }
  double eta() const { return eta_; }
  const Frame& frame() const { return frame_; }
  const Matrix& p() const { return frame_.p(); }
  const Matrix& p_root() const { return frame_.root(); }

  /// The same problem for another number of heads.
  Problem with_heads(int heads) const;
  /// The same problem with other overlaps of the hidden directions; none: I.
  Problem with_overlaps(const std::optional<Matrix>& p) const;

  /// The law of A theta, theta in the frame.
  std::shared_ptr<const Prior> prior_times(const Matrix& A) const {
    return linear_image(prior_, A);
  }

  /// What the activation trains besides m and R.
  const std::shared_ptr<const BlockLayout>& layout() const { return layout_; }
  /// A point of this problem's shape: all zero, or m = 0, R = eta I and the blocks where training
  /// starts.
  Point zero_point() const;
  Point start_point() const;

  /// True if "m", "R" or a block is trained.
  bool trains(std::string_view name) const;
  bool trains_all() const { return frozen_.empty(); }
  /// Sets what is frozen in a gradient to zero.
  void freeze(Point& gradient) const;

  /// Remarks on the options that are no errors (a parameter the prior does not use).
  const std::vector<std::string>& notes() const { return notes_; }

  /// Throws OptionError if a point does not have this problem's shape or is not finite.
  void check(const Point& point) const;

 private:
  void enter_frame();
  void set_frozen(const ProblemOptions& options);

  std::shared_ptr<const Activation> activation_;
  std::shared_ptr<const Prior> plain_prior_, prior_;  ///< as given, and in the frame
  Sizes sizes_;
  double eta_;
  Frame frame_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::string> frozen_;
  std::vector<std::string> notes_;
};

}  // namespace headflow
