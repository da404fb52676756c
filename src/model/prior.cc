#include "model/prior.h"

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "core/suggest.h"

namespace headflow {

// ---- The registry: one line a prior, defined in priors/<name>.cc ----
#define HEADFLOW_PRIORS(X) \
  X(flipping)              \
  X(gaussian)              \
  X(discrete)              \
  X(mixture)               \
  /* a new one stands above this line */

#define HEADFLOW_DECLARE(name) const PriorInfo& name##_prior();
HEADFLOW_PRIORS(HEADFLOW_DECLARE)
#undef HEADFLOW_DECLARE

namespace {

Registry<PriorInfo>& prior_registry() {
#define HEADFLOW_ENTRY(name) std::make_shared<const PriorInfo>(name##_prior()),
  static Registry<PriorInfo> all("a prior", {HEADFLOW_PRIORS(HEADFLOW_ENTRY)});
#undef HEADFLOW_ENTRY
  return all;
}

/// A law that is no mixture.
class LinearImage final : public Prior {
 public:
  LinearImage(std::shared_ptr<const Prior> prior, const Matrix& A)
      : prior_(std::move(prior)),
        A_(A),
        mean_(A * prior_->mean()),
        covariance_(A * prior_->covariance() * A.transpose()) {}

  const Vector& mean() const override { return mean_; }
  const Matrix& covariance() const override { return covariance_; }
  bool uses_normals() const override { return prior_->uses_normals(); }
  void sample(double uniform, const double* normals, double* theta) const override {
    Vector before(A_.cols());
    prior_->sample(uniform, normals, before.data());
    Eigen::Map<Vector>(theta, A_.rows()) = A_ * before;
  }
  void sample_many(int count, const double* uniforms, double* thetas) const override {
    Matrix before(count, A_.cols());
    prior_->sample_many(count, uniforms, before.data());
    for (int i = 0; i < count; ++i) {
      Eigen::Map<Vector>(thetas + i * A_.rows(), A_.rows()) = A_ * before.row(i).transpose();
    }
  }
  Vector largest(double largest_normal) const override {
    return A_.cwiseAbs() * prior_->largest(largest_normal);
  }

 private:
  std::shared_ptr<const Prior> prior_;
  Matrix A_;
  Vector mean_;
  Matrix covariance_;
};

class PriorOfUniform final : public Prior {
 public:
  using Sample = std::function<void(int, const double*, double*)>;
  PriorOfUniform(Vector mean, Matrix covariance, Vector largest, Sample sample)
      : mean_(std::move(mean)),
        covariance_(std::move(covariance)),
        largest_(std::move(largest)),
        sample_(std::move(sample)) {}

  const Vector& mean() const override { return mean_; }
  const Matrix& covariance() const override { return covariance_; }
  bool uses_normals() const override { return false; }
  void sample(double uniform, const double* /*normals*/, double* theta) const override {
    sample_(1, &uniform, theta);
  }
  void sample_many(int count, const double* uniforms, double* thetas) const override {
    sample_(count, uniforms, thetas);
  }
  Vector largest(double /*largest_normal*/) const override { return largest_; }

  void check() const {
    constexpr int kNumbers = 4096;
    const Eigen::Index F = mean_.size();
    if (covariance_.rows() != F || covariance_.cols() != F || largest_.size() != F) {
      throw Error(
          fmt::format("a prior whose mean has {} numbers has as many bounds, and a "
                      "covariance of {} by {}",
                      F, F, F));
    }
    Vector uniforms(kNumbers), theta(F), sum = Vector::Zero(F);
    Matrix all(kNumbers, F), squares = Matrix::Zero(F, F);
    for (int i = 0; i < kNumbers; ++i) uniforms[i] = (i + 0.5) / kNumbers;
    sample_(kNumbers, uniforms.data(), all.data());
    for (int i = 0; i < kNumbers; ++i) {
      theta = all.row(i);
      if (!((theta.cwiseAbs() - largest_).array() <= 1e-9 * largest_.array()).all()) {
        throw Error("a prior's samples are not within its largest |theta|");
      }
      sum += (theta - mean_) / kNumbers;
      squares += (theta - mean_) * (theta - mean_).transpose() / kNumbers;
    }
    const Matrix off = (squares - covariance_).cwiseAbs();
    if (!(sum.cwiseAbs().array() <= 0.01 * largest_.array()).all() ||
        !(off.array() <= 0.01 * (largest_ * largest_.transpose()).array()).all()) {
      throw Error("a prior's samples have not the mean and the covariance that it states");
    }
  }

 private:
  Vector mean_;
  Matrix covariance_;
  Vector largest_;
  Sample sample_;
};

}  // namespace

std::shared_ptr<const Prior> prior_of_uniform(
    const Vector& mean, const Matrix& covariance, const Vector& largest,
    std::function<void(double uniform, double* theta)> sample) {
  const Eigen::Index F = mean.size();
  return prior_of_uniforms(mean, covariance, largest,
                           [F, one = std::move(sample)](int count, const double* u, double* theta) {
                             for (int i = 0; i < count; ++i) one(u[i], theta + i * F);
                           });
}

std::shared_ptr<const Prior> prior_of_uniforms(
    const Vector& mean, const Matrix& covariance, const Vector& largest,
    std::function<void(int count, const double* uniforms, double* thetas)> sample) {
  auto out = std::make_shared<const PriorOfUniform>(mean, covariance, largest, std::move(sample));
  out->check();
  return out;
}

std::vector<const PriorInfo*> priors() {
  std::vector<const PriorInfo*> out;
  for (const auto& one : prior_registry().all()) out.push_back(one.get());
  return out;
}

void register_prior(const PriorInfo& info) {
  prior_registry().add(std::make_shared<const PriorInfo>(info),
                       [](const PriorInfo& one) { return one.name; });
}

void close_priors() { prior_registry().close(); }

std::shared_ptr<const Prior> linear_image(std::shared_ptr<const Prior> prior, const Matrix& A) {
  const GaussianMixture* mixture = prior->mixture();
  if (!mixture) return std::make_shared<const LinearImage>(std::move(prior), A);
  std::vector<MixtureComponent> components = mixture->components();
  for (MixtureComponent& component : components) {
    component.mean = (A * component.mean).eval();
    component.factor = (A * component.factor).eval();
  }
  return std::make_shared<const GaussianMixture>(std::move(components));
}

const PriorInfo& find_prior(std::string_view name) {
  std::vector<std::string> names;
  for (const PriorInfo* prior : priors()) {
    if (prior->name == name) return *prior;
    names.emplace_back(prior->name);
  }
  throw OptionError("problem.prior", in_quotes(name), one_of(names, name));
}

GaussianMixture::GaussianMixture(std::vector<MixtureComponent> components)
    : components_(std::move(components)) {
  const Eigen::Index F = components_.front().mean.size();
  mean_ = Vector::Zero(F);
  Matrix second = Matrix::Zero(F, F);
  double total = 0;
  for (const auto& [weight, mean, factor] : components_) {
    mean_ += weight * mean;
    second += weight * (mean * mean.transpose() + factor * factor.transpose());
    cumulative_.push_back(total += weight);
    uses_normals_ |= factor.cols() > 0;
  }
  covariance_ = second - mean_ * mean_.transpose();
  cumulative_.back() = 1.0;
}

std::size_t GaussianMixture::component(double uniform) const {
  const auto it = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, uniform);
  return static_cast<std::size_t>(it - cumulative_.begin());
}

void GaussianMixture::sample(double uniform, const double* normals, double* theta) const {
  sample_component(component(uniform), normals, theta);
}

void GaussianMixture::sample_component(std::size_t k, const double* normals, double* theta) const {
  const auto& [weight, mean, factor] = components_[k];
  for (Eigen::Index f = 0; f < mean.size(); ++f) {
    double value = mean[f];
    for (Eigen::Index j = 0; j < factor.cols(); ++j) value += factor(f, j) * normals[j];
    theta[f] = value;
  }
}

Vector GaussianMixture::largest(double largest_normal) const {
  Vector bound = Vector::Zero(mean_.size());
  for (const auto& [weight, mean, factor] : components_) {
    const Vector spread = factor.cwiseAbs().rowwise().sum() * largest_normal;
    bound = bound.cwiseMax(mean.cwiseAbs() + spread);
  }
  return bound;
}

std::string parameter_text(const Matrix& value) {
  const auto row_text = [](const auto& row) {
    std::string text;
    for (const double x : row) text += fmt::format("{}{}", text.empty() ? "" : ", ", x);
    return "[" + text + "]";
  };
  if (value.size() == 0) return "[]";
  if (value.size() == 1) return fmt::format("{}", value(0, 0));
  if (value.rows() == 1) return shortened(row_text(value.row(0)));
  std::string text;
  for (const auto& row : value.rowwise()) text += (text.empty() ? "" : ", ") + row_text(row);
  return shortened("[" + text + "]");
}

Vector vector_parameter(const PriorParameters& parameters, std::string_view name, int size) {
  const Matrix& given = parameters.find(name)->second;
  if (given.rows() != 1 || given.cols() != size) {
    throw OptionError(fmt::format("problem.{}", name), parameter_text(given),
                      fmt::format("must be a list of {} numbers", size));
  }
  if (!given.allFinite()) {
    throw OptionError(fmt::format("problem.{}", name), parameter_text(given), "must be finite");
  }
  return given.row(0);
}

Vector signal_strengths(const PriorParameters& parameters) {
  const auto it = parameters.find("nu");
  if (it == parameters.end()) {
    throw OptionError("problem.nu", "", "give the signal strengths, nu = [nu1, nu2]");
  }
  const Matrix& nu = it->second;
  if (nu.rows() != 1 || nu.cols() < 1 || nu.cols() > 2) {
    throw OptionError("problem.nu", parameter_text(nu),
                      "must be one or two signal strengths, nu = [nu1, nu2]");
  }
  if (!(nu.minCoeff() >= 0.0) || !nu.allFinite()) {
    throw OptionError("problem.nu", parameter_text(nu),
                      "signal strengths must be finite and not negative");
  }
  return nu.row(0);
}

}  // namespace headflow
