#include <cstdint>

#include "dynamics/integrator.h"

namespace headflow {
namespace {

class Euler final : public Integrator {
 public:
  Euler(const Field& field, const Vector& y0, double step,
        const std::function<void(std::int64_t)>& before_step)
      : field_(field),
        before_step_(before_step),
        step_(step),
        y_(y0),
        velocity_(Vector::Zero(y0.size())),
        next_velocity_(y0.size()) {}

  bool advance() override {
    if (before_step_) before_step_(steps_);
    if (!field_(y_.data(), next_velocity_.data())) return false;
    velocity_.swap(next_velocity_);
    y_ += step_ * velocity_;
    ++steps_;
    return true;
  }
  std::string why() const override { return "the gradient is not finite"; }
  int order() const override { return 1; }
  double time() const override { return static_cast<double>(steps_) * step_; }
  void state(double time, double* y) const override {
    const double back = this->time() - time;
    Eigen::Map<Vector>(y, y_.size()) = y_ - back * velocity_;
  }
  double speed() const override { return velocity_.norm(); }

 private:
  Field field_;
  std::function<void(std::int64_t)> before_step_;
  double step_;
  std::int64_t steps_ = 0;
  Vector y_, velocity_, next_velocity_;
};

}  // namespace

std::unique_ptr<Integrator> make_euler(const Field& field, const Vector& y0, double step,
                                       const std::function<void(std::int64_t)>& before_step) {
  return std::make_unique<Euler>(field, y0, step, before_step);
}

}  // namespace headflow
