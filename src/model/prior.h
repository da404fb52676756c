#pragma once

// The law P_theta of the feature weights.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/matrix.h"

namespace headflow {

class GaussianMixture;

/// What the rest of headflow needs of a prior. A law of one's own derives from it; most are a
/// GaussianMixture already.
class Prior {
 public:
  virtual ~Prior() = default;

  virtual const Vector& mean() const = 0;        ///< E theta
  virtual const Matrix& covariance() const = 0;  ///< Cov theta

  /// One theta from a uniform in (0, 1) and F standard normals: the same map serves
  /// pseudo-random and quasi-random numbers.
  virtual void sample(double uniform, const double* normals, double* theta) const = 0;
  /// Many theta at once, one after the other, of a law that ignores the normals.
  virtual void sample_many(int count, const double* uniforms, double* thetas) const {
    for (int i = 0; i < count; ++i) sample(uniforms[i], nullptr, thetas + i * mean().size());
  }
  /// False if `sample` ignores the normals (a discrete law).
  virtual bool uses_normals() const = 0;
  /// A bound of |theta_f| for each f when all |normals| <= largest_normal.
  virtual Vector largest(double largest_normal) const = 0;

  /// The law as a mixture of Gaussians and atoms, if it is one: then expectations over it are
  /// exact.
  virtual const GaussianMixture* mixture() const { return nullptr; }
};

/// A bounded law that is a function of one uniform number in (0, 1), with its moments and the
/// largest |theta_f| for each f. Throws Error where `sample` contradicts them, over 4096 numbers by
/// more than a hundredth of the largest.
std::shared_ptr<const Prior> prior_of_uniform(
    const Vector& mean, const Matrix& covariance, const Vector& largest,
    std::function<void(double uniform, double* theta)> sample);

/// The same, of a function of many numbers at once (theta after theta): for those of which a call
/// costs much by itself.
std::shared_ptr<const Prior> prior_of_uniforms(
    const Vector& mean, const Matrix& covariance, const Vector& largest,
    std::function<void(int count, const double* uniforms, double* thetas)> sample);

/// The law of A theta.
std::shared_ptr<const Prior> linear_image(std::shared_ptr<const Prior> prior, const Matrix& A);

/// sum_k weight_k N(mean_k, factor_k factor_k^T); an atom has a factor with no columns.
/// Discrete, Gaussian and mixed priors are all of this form.
struct MixtureComponent {
  double weight;
  Vector mean;
  Matrix factor;
};

class GaussianMixture final : public Prior {
 public:
  explicit GaussianMixture(std::vector<MixtureComponent> components);

  const std::vector<MixtureComponent>& components() const { return components_; }
  /// The component that a uniform number chooses.
  std::size_t component(double uniform) const;
  /// One theta of component k from as many standard normals as its factor has columns.
  void sample_component(std::size_t k, const double* normals, double* theta) const;

  const Vector& mean() const override { return mean_; }
  const Matrix& covariance() const override { return covariance_; }
  void sample(double uniform, const double* normals, double* theta) const override;
  bool uses_normals() const override { return uses_normals_; }
  Vector largest(double largest_normal) const override;
  const GaussianMixture* mixture() const override { return this; }

 private:
  std::vector<MixtureComponent> components_;
  std::vector<double> cumulative_;
  Vector mean_;
  Matrix covariance_;
  bool uses_normals_ = false;
};

/// A parameter that a prior reads from the [problem] table; a row or a number is a matrix too.
struct ParameterInfo {
  std::string_view name;
  std::string_view help;
  /// How many numbers one number stands for, if that is not one.
  int (*meant_by_one)(int features) = nullptr;
};

/// Parameters that were given, by name.
using PriorParameters = std::map<std::string, Matrix, std::less<>>;

struct PriorInfo {
  std::string_view name;  ///< as in configuration files
  std::string_view law;   ///< for help and docs
  std::vector<ParameterInfo> parameters;
  /// Throws OptionError for a parameter that is missing or wrong.
  std::function<std::shared_ptr<const Prior>(int features, const PriorParameters& parameters)> make;
};

/// The registry (prior.cc): those of headflow, and those that were added.
std::vector<const PriorInfo*> priors();
/// Makes a prior known by its name. Throws Error if there is one of that name, or if the table of
/// keys was made already.
void register_prior(const PriorInfo& info);
void close_priors();  ///< for the table of keys
/// Throws OptionError for problem.prior if there is none of that name.
const PriorInfo& find_prior(std::string_view name);

// Helpers for priors/*.cc. Each throws OptionError naming problem.<name>, value and rule.

/// The given matrix as text, as in a configuration file.
std::string parameter_text(const Matrix& value);
/// Signal strengths nu = [nu1, nu2] or a single number: one or two values >= 0.
Vector signal_strengths(const PriorParameters& parameters);
inline int both_strengths(int features) { return features > 1 ? 2 : 1; }
/// A vector with `size` entries.
Vector vector_parameter(const PriorParameters& parameters, std::string_view name, int size);

}  // namespace headflow
