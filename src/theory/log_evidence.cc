#include "theory/log_evidence.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index.h"
#include "core/lane_products.h"

namespace headflow {
namespace {

/// Tokens whose products are in flight at once.
constexpr int kTokensAtOnce = 64;

}  // namespace

LogEvidence::LogEvidence(const GaussianMixture& prior) {
  for (const MixtureComponent& component : prior.components()) {
    if (component.weight == 0) continue;
    // Of N(mean, B B^T): A = S^(-1/2) B^T with S = I + B^T B (Woodbury), b = mean - A^T A mean.
    const Eigen::Index rank = component.factor.cols();
    const Matrix inner =
        Matrix::Identity(rank, rank) + component.factor.transpose() * component.factor;
    const Eigen::LLT<Matrix> cholesky(inner);
    const Matrix A = cholesky.matrixL().solve(Matrix(component.factor.transpose()));
    const Vector b = component.mean - A.transpose() * (A * component.mean);
    Term term;
    term.rows.resize(1 + rank, component.mean.size());
    term.rows.row(0) = b;
    term.rows.bottomRows(rank) = A;
    term.constant = std::log(component.weight) - 0.5 * component.mean.dot(b);
    for (Eigen::Index i = 0; i < rank; ++i) term.constant -= std::log(cholesky.matrixLLT()(i, i));
    most_rows_ = std::max(most_rows_, 1 + rank);
    terms_.push_back(std::move(term));
  }
}

double LogEvidence::operator()(const Vector& chi) const {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const Term& term : terms_) {
    double value = term.constant + term.rows.row(0).dot(chi);
    for (Eigen::Index r = 1; r < term.rows.rows(); ++r) {
      const double seen = term.rows.row(r).dot(chi);
      value += 0.5 * seen * seen;
    }
    if (value > most) sum *= std::exp(most - value), most = value;
    sum += std::exp(value - most);
  }
  return most + std::log(sum);
}

std::size_t LogEvidence::scratch_groups(int tokens) const {
  return at((most_rows_ + 1) * std::min(tokens, kTokensAtOnce));
}

void LogEvidence::lanewise(const double* chi, int tokens, double* scratch, double* out) const {
  const auto F = static_cast<int>(terms_.front().rows.cols());
  for (int first = 0; first < tokens; first += kTokensAtOnce) {
    const int count = std::min(kTokensAtOnce, tokens - first);
    const int numbers = count * kLanes;
    double* most = lanes(out, first);
    double* sum = scratch;
    double* seen = lanes(scratch, count);
    for (const Term& term : terms_) {
      const auto rows = static_cast<int>(term.rows.rows());
      lane_scores(term.rows.data(), F, rows, F, lanes(chi, std::ptrdiff_t{first} * F), count, 0,
                  seen);
      const bool is_first = &term == &terms_.front();
      for (int i = 0; i < numbers; ++i) {
        double squares = 0;
        for (int r = 1; r < rows; ++r) {
          const double x = seen[r * numbers + i];
          squares += x * x;
        }
        const double value = term.constant + seen[i] + 0.5 * squares;
        if (is_first) {
          most[i] = value;
          sum[i] = 1;
        } else if (value > most[i]) {
          sum[i] = sum[i] * std::exp(most[i] - value) + 1;
          most[i] = value;
        } else {
          sum[i] += std::exp(value - most[i]);
        }
      }
    }
    for (int i = 0; i < numbers; ++i) most[i] += std::log(sum[i]);
  }
}

}  // namespace headflow
