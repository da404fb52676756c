#include "expectation/exact_with_samples.h"

#include <fmt/format.h>

namespace headflow {
namespace {

class ExactWithSamples final : public Engine {
 public:
  ExactWithSamples(std::unique_ptr<Engine> exact, std::unique_ptr<Engine> sampled)
      : Engine(exact->problem()),
        exact_(std::move(exact)),
        sampled_(std::move(sampled)),
        name_(fmt::format("{}+{}", exact_->name(), sampled_->name())) {
    set_reason(fmt::format("{}: gradients by {}, second moments by {} with {} points", name_,
                           exact_->name(), sampled_->name(), sampled_->samples()));
  }

  std::string_view name() const override { return name_; }
  ErrorKind error_kind() const override { return exact_->error_kind(); }
  double tolerance() const override { return exact_->tolerance(); }
  std::int64_t samples() const override { return sampled_->samples(); }

  void evaluate(const Point& point, const Request& request, Evaluation& out) override {
    if (request.second_moment) {
      sampled_->evaluate(point, {.loss_error = false, .second_moment = true}, moments_);
      out.second_moment = moments_.second_moment;
    }
    Request rest = request;
    rest.second_moment = false;
    exact_->evaluate(point, rest, out);
  }
  void refresh(std::uint32_t draw) override { sampled_->refresh(draw); }
  void adapt(const Point& point) override { exact_->adapt(point); }
  bool follow(const Point& point) override { return exact_->follow(point); }
  void hessian_product(const Point& point, const Point& direction, Point& out) override {
    exact_->hessian_product(point, direction, out);
  }

 private:
  std::unique_ptr<Engine> exact_, sampled_;
  std::string name_;
  Evaluation moments_;
};

}  // namespace

std::unique_ptr<Engine> exact_with_samples(std::unique_ptr<Engine> exact,
                                           std::unique_ptr<Engine> sampled) {
  return std::make_unique<ExactWithSamples>(std::move(exact), std::move(sampled));
}

}  // namespace headflow
