// The Bayes limit: propositions IV.1 and IV.2.

#include "theory/bayes.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "core/random.h"
#include "theory/posterior.h"
#include "verify/claim.h"
#include "verify/setting.h"

namespace headflow {
namespace {

Matrix normals(RandomStream& stream, Eigen::Index rows, Eigen::Index columns) {
  Matrix out(rows, columns);
  for (double& x : out.reshaped<Eigen::RowMajor>()) x = stream.normal();
  return out;
}

/// Log density of all tokens given which one is relevant, in D dimensions: no formula of the paper.
/// X_eps ~ sum_k weight_k N(K mean_k, I + K factor_k factor_k^T K^T), with K = (k*_1 ... k*_F).
class PlainLikelihood {
 public:
  PlainLikelihood(const GaussianMixture& prior, const Matrix& spikes) {
    const Eigen::Index D = spikes.cols();
    for (const MixtureComponent& c : prior.components()) {
      const Matrix spread = spikes.transpose() * c.factor;
      parts_.push_back({c.weight, spikes.transpose() * c.mean,
                        Eigen::LLT<Matrix>(Matrix::Identity(D, D) + spread * spread.transpose())});
    }
  }

  Vector posterior(const Matrix& X) const {
    Vector log_density(X.rows());
    for (Eigen::Index l = 0; l < X.rows(); ++l) {
      double density = 0;
      for (const Part& part : parts_) {
        const Vector off = X.row(l).transpose() - part.mean;
        const Vector white = part.covariance.matrixL().solve(off);
        const double log_root = part.covariance.matrixLLT().diagonal().array().log().sum();
        density +=
            part.weight * std::exp(0.5 * (X.row(l).squaredNorm() - white.squaredNorm()) - log_root);
      }
      log_density[l] = std::log(density);  // over that of a token without signal
    }
    const Vector w = (log_density.array() - log_density.maxCoeff()).exp();
    return w / w.sum();
  }

 private:
  struct Part {
    double weight;
    Vector mean;
    Eigen::LLT<Matrix> covariance;
  };
  std::vector<Part> parts_;
};

std::vector<Row> bayes_estimator(Effort effort, const Context& context) {
  std::vector<Row> rows;
  constexpr int D = 40, L = 5, F = 2;
  for (const char* prior : {"flipping", "gaussian"}) {
    ProblemOptions options = setting("softmax", prior, L, 2, F, {3, 2});
    const GaussianMixture plain = *Problem(options).prior().mixture();
    RandomStream stream({77, Purpose::verify, 0}, 0);
    const Matrix spikes = normals(stream, F, D) / std::sqrt(D);
    options.p = spikes * spikes.transpose();
    const Problem problem(options);
    const PlainLikelihood likelihood(plain, spikes);
    // Components along the frame: chi* p^(-1/2).
    const Matrix into_frame = problem.p_root().inverse();
    double worst = 0, sum = 0, square = 0;
    const int sequences = by(effort, 20'000, 40'000);
    for (int i = 0; i < sequences; ++i) {
      context.check();
      Matrix X = normals(stream, L, D);
      Vector theta(F), z(F);
      for (double& x : z) x = stream.normal();
      plain.sample(stream.uniform(), z.data(), theta.data());
      const auto relevant = static_cast<Eigen::Index>(stream.uniform() * L);
      X.row(relevant) += theta.transpose() * spikes;
      const Vector formula = bayes_posterior(problem, X * spikes.transpose() * into_frame);
      worst = std::max(worst, (formula - likelihood.posterior(X)).cwiseAbs().maxCoeff());
      const double loss = (formula - Vector::Unit(L, relevant)).squaredNorm();
      sum += loss, square += loss * loss;
    }
    const double n = sequences;
    Row row{"Prop. IV.1", "the Bayes posterior: formula minus likelihoods of D-dimensional tokens"};
    row.setting = fmt::format("{}; D = {}, {} sequences", text(options), D, sequences);
    row.measured = worst;
    row.error = 1e-12;
    row.error_kind = ErrorKind::assumed;
    row.smallest_wrong = 1e-6;
    rows.push_back(row);
    row.statement = "its risk: mean over sequences, against one integral";
    const BayesRisk risk = bayes_risk(problem, {.tolerance = 1e-9}, context);
    row.predicted = {risk.risk};
    row.measured = sum / n;
    row.error = std::sqrt((square / n - sum * sum / n / n) / (n - 1));
    row.error_kind = ErrorKind::replicas;
    row.smallest_wrong = 1.05 * risk.risk;
    rows.push_back(row);
  }
  return rows;
}

Point at_the_atoms(const Problem& problem, bool printed_bias) {
  const auto& atoms = problem.prior().mixture()->components();
  Point point = problem.zero_point();
  for (int h = 0; h < problem.H(); ++h) {
    const MixtureComponent& atom = atoms[static_cast<std::size_t>(h)];
    const double norm = atom.mean.squaredNorm(), log_weight = std::log(atom.weight);
    point.m.row(h) = atom.mean;
    point["b"][h] = printed_bias ? -norm * log_weight / 2 : log_weight - norm / 2;
  }
  return point;
}

// Proposition IV.2, and erratum 1: the bias that is printed is not that of the Bayes estimator.
std::vector<Row> bayes_attained(const Context& context) {
  std::vector<Row> rows;
  Matrix points(3, 2);
  points << 1.5, 0.5, -1, 1, 0.3, -0.8;
  for (const int L : {2, 5, 50}) {
    ProblemOptions options = setting("b-softmax", "discrete", L, 3, 2, {});
    options.prior_parameters["points"] = points;
    options.prior_parameters["weights"] = row_of({0.5, 0.3, 0.2});
    const Problem problem(options);
    const BayesRisk risk = bayes_risk(problem, {.tolerance = 1e-10}, context);
    const auto engine = quadrature(problem, 1e-9, context);
    Evaluation corrected, printed;
    engine->evaluate(at_the_atoms(problem, false), {}, corrected);
    engine->adapt(at_the_atoms(problem, true));
    engine->evaluate(at_the_atoms(problem, true), {}, printed);
    Row row{"Prop. IV.2", "B-softmax with k_h = k(theta^h), b_h = log P - |theta^h|^2/2 is Bayes"};
    row.setting = text(options) + ", 3 points; loss minus risk";
    row.measured = corrected.loss - risk.risk;
    row.error = corrected.loss_error + risk.error;
    row.error_kind = ErrorKind::refinement;
    row.slack = 1e-8;
    row.smallest_wrong = 1e-5;
    rows.push_back(row);
    row.id = "Erratum 1";
    row.statement = "with the printed b_h = -|theta^h|^2 log P / 2 it is not: loss minus risk";
    row.predicted = {1e-4, Relation::at_least};
    row.printed = Prediction{0};
    row.measured = printed.loss - risk.risk;
    row.error = printed.loss_error + risk.error;
    row.smallest_wrong = 0.1;  // it is not far from it, either
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::vector<Claim> bayes_claims(Effort effort) {
  return {{"Prop. IV.1", "the Bayes estimator", 1,
           [effort](const Context& context) { return bayes_estimator(effort, context); }},
          {"Prop. IV.2 (erratum 1)", "B-softmax is the Bayes estimator", 1, bayes_attained}};
}

}  // namespace headflow
