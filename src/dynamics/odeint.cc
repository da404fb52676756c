#include <algorithm>
#include <boost/numeric/odeint/algebra/vector_space_algebra.hpp>
#include <boost/numeric/odeint/external/eigen/eigen_resize.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <cmath>

#include "dynamics/portable.h"
#include "dynamics/tolerated_field.h"

namespace headflow {
namespace {

/// Steps are Odeint's; their size is chosen here, so that a step may fail without an end.
class DormandPrince final : public Integrator {
 public:
  DormandPrince(const Field& field, const Vector& y0, double relative, double absolute)
      : field_(field, relative, absolute),
        y_(y0),
        velocity_(y0.size()),
        other_(y0.size()),
        other_velocity_(y0.size()),
        error_(y0.size()) {}

  bool advance() override {
    dense_ = false;
    if (!(step_ > 0.0)) {
      if (!field_.evaluate(y_, velocity_)) return failed("the field is not finite at the start");
      step_ = field_.first_step(y_, velocity_, 4);
    }
    double most = 5.0;
    while (time_ + step_ > time_) {
      const double error = try_step();
      if (error <= 1.0) {
        y_.swap(other_);
        velocity_.swap(other_velocity_);
        last_step_ = step_;
        time_ += step_;
        step_ *= std::min(most, change(error));
        return dense_ = true;
      }
      if (!std::isfinite(error) && stall_.failed_at(time_)) {
        return failed("steps fail, however small");
      }
      most = 1.0;
      step_ *= std::isfinite(error) ? std::max(0.2, change(error)) : 0.25;
    }
    return failed("no step is small enough");
  }

  std::string why() const override { return why_; }
  int order() const override { return 5; }
  double time() const override { return time_; }
  double speed() const override { return time_ > 0.0 ? velocity_.norm() : HUGE_VAL; }

  void state(double time, double* y) const override {
    Vector out = y_;
    if (dense_ && time < time_) {
      stepper_.calc_state(time, out, other_, other_velocity_, time_ - last_step_, y_, velocity_,
                          time_);
    }
    Eigen::Map<Vector>(y, out.size()) = out;
  }

 private:
  struct NotFiniteThere {};  // thrown through Odeint

  /// To other_, from y_; its error in units of what is tolerated, infinite if the field is.
  double try_step() {
    const auto field = [this](const Vector& y, Vector& velocity, double /*time*/) {
      if (!field_.evaluate(y, velocity)) throw NotFiniteThere();
    };
    try {
      stepper_.do_step(field, y_, velocity_, time_, other_, other_velocity_, step_, error_);
    } catch (const NotFiniteThere&) {
      return HUGE_VAL;
    }
    const double error = field_.norm(error_, y_.cwiseAbs().cwiseMax(other_.cwiseAbs()));
    return std::isfinite(error) ? error : HUGE_VAL;
  }

  /// Of the step, for an error a little below what is tolerated.
  static double change(double error) { return 0.9 * std::pow(std::max(error, 1e-9), -1.0 / 5); }

  bool failed(const char* reason) {
    why_ = fmt::format("no explicit step could be taken at tau = {:.6g}: {}", time_, reason);
    return false;
  }

  ToleratedField field_;
  Stall stall_;
  boost::numeric::odeint::runge_kutta_dopri5<Vector, double, Vector, double,
                                             boost::numeric::odeint::vector_space_algebra>
      stepper_;
  Vector y_, velocity_;            ///< at time_
  Vector other_, other_velocity_;  ///< one step before; during a trial, one step after
  Vector error_;
  double time_ = 0, step_ = 0, last_step_ = 0;
  bool dense_ = false;  ///< the stages that the stepper holds are those of the last step
  std::string why_;
};

}  // namespace

std::unique_ptr<Integrator> make_dormand_prince(const Field& field, const Vector& y0,
                                                double relative, double absolute) {
  return std::make_unique<DormandPrince>(field, y0, relative, absolute);
}

}  // namespace headflow
