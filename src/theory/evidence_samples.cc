// The evidence of any mixture from random tokens, for priors that no grid can hold.

#include "core/random.h"
#include "theory/evidence.h"
#include "theory/log_evidence.h"
#include "theory/log_histogram.h"

namespace headflow {
namespace {

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
