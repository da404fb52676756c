#include "model/problem.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

int checked_size(const char* key, int value, int largest) {
  if (value < 1 || value > largest) {
    throw OptionError(key, fmt::format("{}", value), fmt::format("must be from 1 to {}", largest));
  }
  return value;
}

Sizes checked_sizes(const ProblemOptions& options, int features) {
  return {checked_size("problem.tokens", options.tokens, kMostTokens),
          checked_size("problem.heads", options.heads, kMostHeads),
          checked_size("problem.features", features, kMostFeatures)};
}

void check_shape(const char* key, const Matrix& value, Eigen::Index rows, Eigen::Index cols) {
  if (value.rows() != rows || value.cols() != cols) {
    throw OptionError(key, parameter_text(value), fmt::format("must be {} x {}", rows, cols));
  }
  if (!value.allFinite()) throw OptionError(key, parameter_text(value), "must be finite");
}

/// The prior of that name, and remarks on parameters that it does not use.
std::shared_ptr<const Prior> named_prior(const ProblemOptions& options,
                                         std::vector<std::string>& notes) {
  checked_sizes(options, options.features);
  if (options.has_own_prior()) {
    const Eigen::Index features = options.own_prior.prior->mean().size();
    if (features != options.features) {
      throw OptionError("problem.features", fmt::format("{}", options.features),
                        fmt::format("must be {}, those of the prior {}", features, options.prior));
    }
    return options.own_prior.prior;
  }
  const PriorInfo& info = find_prior(options.prior);
  PriorParameters used;
  for (const auto& [name, value] : options.prior_parameters) {
    const auto same_name = [&key = name](const ParameterInfo& p) { return p.name == key; };
    if (std::any_of(info.parameters.begin(), info.parameters.end(), same_name)) {
      used.emplace(name, value);
    } else if (std::ranges::any_of(priors(), [&](const PriorInfo* other) {
                 return std::ranges::any_of(other->parameters, same_name);
               })) {
      notes.push_back(fmt::format("problem.{} is not used by prior \"{}\"", name, info.name));
    } else {
      throw OptionError("problem." + name, parameter_text(value), "is a parameter of no prior");
    }
  }
  return info.make(options.features, used);
}

void check_eta(double eta) {
  if (eta >= 0.0 && std::isfinite(eta)) return;
  throw OptionError("problem.eta", fmt::format("{}", eta), "must be finite and not negative");
}

}  // namespace

std::shared_ptr<const Activation> ProblemOptions::find_activation() const {
  if (own_activation && own_activation->name() == activation) return own_activation;
  return headflow::find_activation(activation);
}

Problem::Problem(const ProblemOptions& options)
    : activation_(options.find_activation()),
      sizes_(checked_sizes(options, options.features)),
      eta_(options.eta),
      frame_(options.p, sizes_.F),
      layout_(std::make_shared<const BlockLayout>(activation_->blocks(), sizes_)) {
  check_eta(eta_);
  plain_prior_ = named_prior(options, notes_);
  enter_frame();
  set_frozen(options);
}

Problem::Problem(std::shared_ptr<const Activation> activation, std::shared_ptr<const Prior> prior,
                 const ProblemOptions& options)
    : activation_(std::move(activation)),
      plain_prior_(std::move(prior)),
      sizes_(checked_sizes(options, static_cast<int>(plain_prior_->mean().size()))),
      eta_(options.eta),
      frame_(options.p, sizes_.F),
      layout_(std::make_shared<const BlockLayout>(activation_->blocks(), sizes_)) {
  check_eta(eta_);
  enter_frame();
  set_frozen(options);
}

void Problem::enter_frame() {
  prior_ = frame_.enter(plain_prior_);
  if (prior_->mean().allFinite() && prior_->covariance().allFinite()) return;
  throw OptionError("problem.prior", fmt::format("with {} features", F()),
                    "its numbers are too large: its mean and covariance are not finite");
}

void Problem::set_frozen(const ProblemOptions& options) {
  if (!options.train) return;
  std::vector<std::string> names = {"m", "R"};
  for (const BlockLayout::Entry& e : layout_->entries()) names.push_back(e.info.name);
  for (const std::string& name : *options.train) {
    if (std::ranges::count(names, name) > 0) continue;
    throw OptionError("problem.train", in_quotes(name), one_of(names, name));
  }
  for (const std::string& name : names) {
    if (std::ranges::count(*options.train, name) == 0) frozen_.push_back(name);
  }
}

Problem Problem::with_heads(int heads) const {
  Problem out = *this;
  out.sizes_.H = checked_size("problem.heads", heads, kMostHeads);
  out.layout_ = std::make_shared<const BlockLayout>(activation_->blocks(), out.sizes_);
  return out;
}

Problem Problem::with_overlaps(const std::optional<Matrix>& p) const {
  Problem out = *this;
  out.frame_ = Frame(p, F());
  out.enter_frame();
  return out;
}

Point Problem::zero_point() const {
  return {Matrix::Zero(H(), F()), Matrix::Zero(H(), H()), Blocks(layout_)};
}

Point Problem::start_point() const {
  Point out = zero_point();
  out.R.diagonal().setConstant(eta_);
  set_initial(out.blocks);
  return out;
}

bool Problem::trains(std::string_view name) const { return std::ranges::count(frozen_, name) == 0; }

void Problem::freeze(Point& gradient) const {
  for (const std::string& name : frozen_) {
    if (name == "m") {
      gradient.m.setZero();
    } else if (name == "R") {
      gradient.R.setZero();
    } else {
      gradient.blocks[name].setZero();
    }
  }
}

void Problem::check(const Point& point) const {
  check_shape("point.m", point.m, H(), F());
  check_shape("point.R", point.R, H(), H());
  if (point.blocks.size() != layout_->size()) {
    throw OptionError(
        "point", fmt::format("{} numbers besides m and R", point.blocks.size()),
        fmt::format("the activation {} has {}", activation_->name(), layout_->size()));
  }
  for (const BlockLayout::Entry& e : layout_->entries()) {
    const Eigen::Map<const Vector> values = point.blocks[e.info.name];
    if (values.allFinite()) continue;
    throw OptionError("point." + e.info.name, parameter_text(Matrix(values.transpose())),
                      "must be finite");
  }
}

}  // namespace headflow
