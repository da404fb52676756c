// An activation and a prior that headflow does not know: gradient checked, flow run, result
// written.
#include <cstdio>
#include <numbers>

#include "analysis/check_gradient.h"
#include "io/result_file.h"
#include "model/formula_activation.h"
#include "study/compute.h"

using namespace headflow;

struct Squares {  // sigma_hl = chi_hl^2 / (e^b_h + sum_l' chi_hl'^2)
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* b, S* sigma) const {
    using std::exp;
    for (int h = 0; h < n.H; ++h, chi += n.L, sigma += n.L) {
      S sum = exp(b[h]);
      for (int l = 0; l < n.L; ++l) sum += chi[l] * chi[l];
      for (int l = 0; l < n.L; ++l) sigma[l] = chi[l] * chi[l] / sum;
    }
  }
};
struct SquareAttention final : FormulaActivation<Squares> {
  std::string_view name() const override { return "squares"; }
  std::string_view formula() const override { return "chi_hl^2 / (e^b_h + sum chi_hl'^2)"; }
  std::vector<BlockInfo> blocks() const override { return {{"b", "bias of a head", {Axis::head}}}; }
};

struct Circle final : Prior {  // theta is uniform on a circle of radius 2
  const Vector zero = Vector::Zero(2);
  const Matrix twice = 2.0 * Matrix::Identity(2, 2);
  const Vector& mean() const override { return zero; }
  const Matrix& covariance() const override { return twice; }
  void sample(double uniform, const double* /*normals*/, double* theta) const override {
    theta[0] = 2 * std::cos(2 * std::numbers::pi * uniform);
    theta[1] = 2 * std::sin(2 * std::numbers::pi * uniform);
  }
  bool uses_normals() const override { return false; }
  Vector largest(double /*normal*/) const override { return Vector::Constant(2, 2.0); }
};

int main(int count, char** arguments) {
  const Problem problem(std::make_shared<SquareAttention>(), std::make_shared<Circle>(),
                        {.tokens = 4, .heads = 2});
  const Point start = initial_point(problem, 0.3, 1);
  const auto engine = make_engine(problem, {.engine = EngineName::qmc, .samples = 512});
  const GradientCheck check = check_gradient(*engine, start);
  Trajectory run;
  const FlowSummary summary = integrate_flow(*engine, start, {.time = 8, .outputs = 4}, run);
  write_result(count > 1 ? arguments[1] : "consumer.nc", flow_dataset(*engine, run, summary));
  std::printf("gradient within %.1e; loss %.6f to %.6f; %s\n", check.relative(), run.loss.front(),
              run.loss.back(), summary.brief().c_str());
  return check.relative() < 1e-7 && run.loss.back() < 0.9 * run.loss.front() ? 0 : 1;
}
