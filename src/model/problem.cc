#include "model/problem.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace headflow {
namespace {

int checked_size(const char* key, int value, int largest) {
  if (value < 1 || value > largest) {
    throw OptionError(key, fmt::format("{}", value), fmt::format("must be from 1 to {}", largest));
  }
  return value;
}

void check_shape(const char* key, const Matrix& value, Eigen::Index rows, Eigen::Index cols) {
  if (value.rows() != rows || value.cols() != cols) {
    throw OptionError(key, parameter_text(value), fmt::format("must be {} x {}", rows, cols));
  }
  if (!value.allFinite()) throw OptionError(key, parameter_text(value), "must be finite");
}

}  // namespace

Problem::Problem(const ProblemOptions& options)
    : activation_(&find_activation(options.activation)),
      L_(checked_size("problem.tokens", options.tokens, kMostTokens)),
      H_(checked_size("problem.heads", options.heads, kMostHeads)),
      F_(checked_size("problem.features", options.features, kMostFeatures)),
      eta_(options.eta),
      frame_(options.p, F_) {
  if (!(eta_ >= 0.0) || !std::isfinite(eta_)) {
    throw OptionError("problem.eta", fmt::format("{}", eta_), "must be finite and not negative");
  }
  const PriorInfo& info = find_prior(options.prior);
  PriorParameters used;
  for (const auto& [name, value] : options.prior_parameters) {
    const auto same_name = [&key = name](const ParameterInfo& p) { return p.name == key; };
    if (std::any_of(info.parameters.begin(), info.parameters.end(), same_name)) {
      used.emplace(name, value);
    } else {
      notes_.push_back(fmt::format("problem.{} is not used by prior \"{}\"", name, info.name));
    }
  }
  prior_ = frame_.enter(info.make(F_, used));
  if (!prior_->mean().allFinite() || !prior_->covariance().allFinite()) {
    throw OptionError("problem.prior", fmt::format("\"{}\"", info.name),
                      "its numbers are too large: its mean and covariance are not finite");
  }
}

Problem Problem::with_heads(int heads) const {
  Problem out = *this;
  out.H_ = heads;
  return out;
}

void Problem::check(const Point& point) const {
  check_shape("point.m", point.m, H_, F_);
  check_shape("point.R", point.R, H_, H_);
  check_shape("point.b", Matrix(point.b.transpose()), 1, H_);
  if (!std::isfinite(point.v))
    throw OptionError("point.v", fmt::format("{}", point.v), "must be finite");
}

}  // namespace headflow
