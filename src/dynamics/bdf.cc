#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "dynamics/portable.h"
#include "dynamics/stoppable_lu.h"
#include "dynamics/tolerated_field.h"

namespace headflow {
namespace {

constexpr int kHighest = 5;       // order
constexpr int kIterations = 4;    // of Newton
constexpr double kNewton = 0.03;  // its error, of what is tolerated
constexpr double kSafety = 0.9;
constexpr double kWorthwhile = 1.3;  // a longer step costs a factorisation
constexpr double kLongest = 10.0, kShortest = 0.2, kAfterFailure = 0.25;  // of the step before

/// With D_k the backward difference of order k at equal steps h, the step of order q to
///   y = sum_{k=0}^q D_k + d   solves   sum_{k=1}^q D_k(y) / k - kappa_q gamma_q d = h f(y),
/// gamma_k = 1 + ... + 1/k. The sum is gamma_q d + sum_k gamma_k D_k, so that
///   c f(y) - psi - d = 0   with   c = h / alpha_q,  psi = sum_k gamma_k D_k / alpha_q.
/// d is then D_{q+1} at the new time, and the step's error is error_q d.
struct NdfCoefficients {
  std::array<double, kHighest + 1> gamma{}, alpha{}, error{};
  NdfCoefficients() {
    constexpr std::array kappa = {0.0, -0.1850, -1.0 / 9, -0.0823, -0.0415, 0.0};
    double sum = 0;
    for (std::size_t k = 0; k < gamma.size(); ++k) {
      if (k > 0) sum += 1.0 / static_cast<double>(k);
      gamma[k] = sum;
      alpha[k] = (1 - kappa[k]) * sum;
      error[k] = kappa[k] * sum + 1.0 / static_cast<double>(k + 1);
    }
  }
};

class Bdf final : public Integrator {
 public:
  Bdf(const Field& field, const Vector& y0, double relative, double absolute,
      const Context& context, const FieldSlopes& slopes)
      : field_(field, relative, absolute),
        slopes_(slopes),
        context_(context),
        differences_(Eigen::MatrixXd::Zero(y0.size(), kHighest + 3)),
        y_(y0),
        d_(y0.size()),
        velocity_(y0.size()),
        correction_(y0.size()),
        columns_(static_cast<std::size_t>(y0.size())) {
    differences_.col(0) = y0;
  }

  bool advance() override {
    if (!(step_ > 0.0)) {
      if (!field_.evaluate(y_, velocity_)) return failed("the field is not finite at the start");
      step_ = field_.first_step(y_, velocity_, 1);
      differences_.col(1) = step_ * velocity_;
    }
    while (time_ + step_ > time_) {
      context_.check();
      if (!solve()) {
        if (stall_.failed_at(time_)) return failed("steps fail, however small");
        change_step(kAfterFailure);
        continue;
      }
      const double error = field_.norm(coefficients_.error[index(order_)] * d_, y_);
      if (error <= 1.0) {
        accept(error);
        return true;
      }
      change_step(std::max(kShortest, kSafety * std::pow(error, -1.0 / (order_ + 1))));
    }
    return failed("no step is small enough");
  }

  std::string why() const override { return why_; }
  int order() const override { return kHighest; }
  double time() const override { return time_; }

  void state(double time, double* y) const override {
    Eigen::Map<Vector> out(y, d_.size());
    out = differences_.col(0);
    double factor = 1;
    for (int k = 0; k < last_.cols(); ++k) {
      factor *= (time - time_ + last_step_ * k) / (last_step_ * (k + 1));
      out += factor * last_.col(k);
    }
  }

  double speed() const override {  // of the same polynomial
    if (last_.cols() == 0) return HUGE_VAL;
    Vector out = Vector::Zero(d_.size());
    for (int k = 0; k < last_.cols(); ++k) out += last_.col(k) / (last_step_ * (k + 1));
    return out.norm();
  }

 private:
  static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  /// y_ and d_ at time_ + step_ by Newton's iteration, with a new Jacobian if the old one fails;
  /// false if the step must be made smaller.
  bool solve() {
    const Vector predicted = differences_.leftCols(order_ + 1).rowwise().sum();
    Vector psi = Vector::Zero(d_.size());
    for (int k = 1; k <= order_; ++k) {
      psi +=
          coefficients_.gamma[index(k)] / coefficients_.alpha[index(order_)] * differences_.col(k);
    }
    for (bool fresh = false;; fresh = true) {
      if (!has_jacobian_) {
        if (!differentiate(predicted)) return false;
        fresh = true;
      }
      if (!factorised_ && !factorise_matrix()) return false;
      switch (iterate(predicted, psi)) {
        case Newton::converged: return true;
        case Newton::not_finite: return false;
        case Newton::slow: break;
      }
      if (fresh) return false;
      has_jacobian_ = factorised_ = false;
    }
  }

  enum class Newton { converged, slow, not_finite };
  Newton iterate(const Vector& predicted, const Vector& psi) {
    y_ = predicted;
    d_.setZero();
    double before = 0;
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      if (!field_.evaluate(y_, velocity_)) return Newton::not_finite;
      correction_ = implicit_part() * velocity_ - psi - d_;
      solve_factorised(columns_.size(), columns_.data(), pivots_, correction_.data());
      const double size = field_.norm(correction_, predicted);
      if (iteration > 0) {
        rate_ = std::max(0.3 * rate_, size / before);  // forgets slowly, from step to step
        if (!(size <= 2 * before)) return Newton::slow;
      }
      y_ += correction_;
      d_ += correction_;
      if (size * std::min(1.0, rate_) * coefficients_.error[index(order_)] <= kNewton) {
        return Newton::converged;
      }
      before = size;
    }
    return Newton::slow;
  }

  double implicit_part() const { return step_ / coefficients_.alpha[index(order_)]; }

  /// The Jacobian; false if the field is not finite about y.
  bool differentiate(const Vector& y) {
    if (slopes_) {
      jacobian_.resize(y.size(), y.size());
      has_jacobian_ = slopes_(y.data(), jacobian_.data());
      factorised_ = false;
      return has_jacobian_;
    }
    const double root = std::sqrt(std::numeric_limits<double>::epsilon());
    if (!field_.evaluate(y, velocity_)) return false;
    jacobian_.resize(y.size(), y.size());
    Vector moved = y;
    for (Eigen::Index j = 0; j < y.size(); ++j) {
      context_.check();
      moved[j] += root * std::max(std::abs(y[j]), 1e-3);
      if (!field_.evaluate(moved, correction_)) return false;
      jacobian_.col(j) = (correction_ - velocity_) / (moved[j] - y[j]);
      moved[j] = y[j];
    }
    has_jacobian_ = true;
    factorised_ = false;
    return true;
  }

  bool factorise_matrix() {
    matrix_ = -implicit_part() * jacobian_;
    matrix_.diagonal().array() += 1.0;
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      columns_[j] = matrix_.col(static_cast<Eigen::Index>(j)).data();
    }
    rate_ = 1;
    switch (factorise(columns_.size(), columns_.data(), pivots_, context_)) {
      case LuOutcome::done: return factorised_ = true;
      case LuOutcome::singular: return false;
      case LuOutcome::stopped: break;
    }
    throw Interrupted();
  }

  void accept(double error) {
    time_ += step_;
    differences_.col(order_ + 2) = d_ - differences_.col(order_ + 1);
    differences_.col(order_ + 1) = d_;
    for (int k = order_; k >= 0; --k) differences_.col(k) += differences_.col(k + 1);
    last_ = differences_.middleCols(1, order_);
    last_step_ = step_;
    if (++equal_steps_ <= order_) return;
    // The order whose error allows the longest step.
    const auto longest = [&](int order, double norm) {
      return kSafety * std::pow(std::max(norm, 1e-30), -1.0 / (order + 1));
    };
    const auto error_of = [&](int order) {
      return field_.norm(coefficients_.error[index(order)] * differences_.col(order + 1), y_);
    };
    int best = order_;
    double change = longest(order_, error);
    for (const int other : {order_ - 1, order_ + 1}) {
      if (other < 1 || other > kHighest) continue;
      if (const double its = longest(other, error_of(other)); its > change) {
        best = other;
        change = its;
      }
    }
    if (change >= 1.0 && change < kWorthwhile) {
      equal_steps_ = 0;
      return;
    }
    order_ = best;
    change_step(std::min(kLongest, change));
  }

  /// The differences of the same polynomial at steps `factor` times as long.
  void change_step(double factor) {
    const auto row = [this](double by) {
      Eigen::MatrixXd out = Eigen::MatrixXd::Zero(order_ + 1, order_ + 1);
      out.row(0).setOnes();
      for (int i = 1; i <= order_; ++i) {
        for (int j = 1; j <= order_; ++j) out(i, j) = out(i - 1, j) * (i - 1 - by * j) / i;
      }
      return out;
    };
    const Eigen::MatrixXd change = row(factor) * row(1.0);
    differences_.leftCols(order_ + 1) = (differences_.leftCols(order_ + 1) * change).eval();
    step_ *= factor;
    equal_steps_ = 0;
    factorised_ = false;
  }

  bool failed(const char* reason) {
    why_ = fmt::format("no implicit step could be taken at tau = {:.6g}: {}", time_, reason);
    return false;
  }

  const NdfCoefficients coefficients_;
  ToleratedField field_;
  FieldSlopes slopes_;
  Context context_;
  Stall stall_;
  Eigen::MatrixXd differences_;  ///< D_0 = y at time_, D_1, ...
  Eigen::MatrixXd last_;         ///< D_1, ..., D_q as the last step left them
  Vector y_, d_, velocity_, correction_;
  Eigen::MatrixXd jacobian_, matrix_;
  std::vector<double*> columns_;  ///< of matrix_, factorised
  std::vector<std::size_t> pivots_;
  bool has_jacobian_ = false, factorised_ = false;
  int order_ = 1, equal_steps_ = 0;
  double time_ = 0, step_ = 0, last_step_ = 0;
  double rate_ = 1;  ///< by which Newton's corrections become smaller
  std::string why_;
};

}  // namespace

std::unique_ptr<Integrator> make_bdf(const Field& field, const Vector& y0, double relative,
                                     double absolute, const Context& context,
                                     const FieldSlopes& slopes) {
  return std::make_unique<Bdf>(field, y0, relative, absolute, context, slopes);
}

}  // namespace headflow
