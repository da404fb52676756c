// The evidence of any mixture from random tokens, for priors that no grid can hold.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "theory/evidence.h"
#include "theory/log_histogram.h"

namespace headflow {
namespace {

/// log w(chi) in F coordinates.
class LogEvidence {
 public:
  explicit LogEvidence(const GaussianMixture& prior) {
    for (const MixtureComponent& component : prior.components()) {
      // chi.C chi/2 + b.chi + c with C = A (I + A^T A)^-1 A^T for the factor A (Woodbury).
      const Eigen::Index rank = component.factor.cols();
      const Matrix inner =
          Matrix::Identity(rank, rank) + component.factor.transpose() * component.factor;
      const Eigen::LLT<Matrix> cholesky(inner);
      Term term;
      term.root = cholesky.matrixL().solve(Matrix(component.factor.transpose()));
      const Vector seen = term.root * component.mean;
      term.linear = component.mean - term.root.transpose() * seen;
      term.constant = std::log(component.weight) - 0.5 * component.mean.dot(term.linear);
      for (Eigen::Index i = 0; i < rank; ++i) term.constant -= std::log(cholesky.matrixLLT()(i, i));
      terms_.push_back(std::move(term));
    }
  }

  double operator()(const Vector& chi) const {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const Term& term : terms_) {
      const Vector seen = term.root * chi;
      const double value = term.constant + term.linear.dot(chi) + 0.5 * seen.squaredNorm();
      if (value > most) sum *= std::exp(most - value), most = value;
      sum += std::exp(value - most);
    }
    return most + std::log(sum);
  }

 private:
  struct Term {
    Matrix root;  ///< C = root^T root
    Vector linear;
    double constant = 0;
  };
  std::vector<Term> terms_;
};

class SampledEvidence final : public Evidence {
 public:
  SampledEvidence(const GaussianMixture& prior, const EvidenceRange& range,
                  const TokenSample& sample, const Workers& workers)
      : histogram_(-range.smallest_u()), nodes_(sample.count) {
    const LogEvidence log_w(prior);
    const Eigen::Index F = prior.mean().size();
    Vector theta(F), normals(F), chi(F);
    const double weight = 1.0 / static_cast<double>(sample.count);
    for (std::int64_t i = 0; i < sample.count; ++i) {
      if (i % 256 == 0) workers.check_go_on();
      const auto item = static_cast<std::uint64_t>(sample.first + i);
      RandomStream noise({sample.seed, Purpose::noise, 0}, item);
      RandomStream signal({sample.seed, Purpose::signal, 0}, item);
      RandomStream choice({sample.seed, Purpose::signal_choice, 0}, item);
      for (double& x : chi) x = noise.normal();
      histogram_.add(log_w(chi), 0.0, weight);
      for (double& x : normals) x = signal.normal();
      prior.sample(choice.uniform(), normals.data(), theta.data());
      histogram_.add(log_w(chi + theta), weight, 0.0);
    }
    histogram_.finish();
  }

  EvidenceValues at(double u) const override { return histogram_.at(u); }
  std::int64_t nodes() const override { return nodes_; }

 private:
  LogHistogram histogram_;
  std::int64_t nodes_;
};

}  // namespace

std::unique_ptr<Evidence> sampled_evidence(const GaussianMixture& prior, const EvidenceRange& range,
                                           const TokenSample& sample, const Workers& workers) {
  return std::make_unique<SampledEvidence>(prior, range, sample, workers);
}

}  // namespace headflow
