// An activation and a prior that headflow does not know: gradient checked, flow run, result
// written.
#include "analysis/check_gradient.h"
#include "io/result_file.h"
#include "model/formula_activation.h"
#include "study/compute.h"
using namespace headflow;

// sigma_hl = chi_hl^2 / (e^b_h + sum_l' chi_hl'^2)
constexpr auto squares = [](const Sizes& n, const auto* chi, const auto* b, auto* sigma) {
  for (int h = 0; h < n.H; ++h, chi += n.L, sigma += n.L) {
    auto sum = exp(b[h]);
    for (int l = 0; l < n.L; ++l) sum += chi[l] * chi[l];
    for (int l = 0; l < n.L; ++l) sigma[l] = chi[l] * chi[l] / sum;
  }
};
// theta on a circle
constexpr auto circle = [](double uniform, double* theta) {
  theta[0] = 2 * cos(2 * M_PI * uniform);
  theta[1] = 2 * sin(2 * M_PI * uniform);
};

int main(int, char** arguments) {
  const Problem problem(
      formula_activation("squares", "in help", squares, {{"b", "bias of a head", {Axis::head}}}),
      prior_of_uniform(Vector::Zero(2), 2 * Matrix::Identity(2, 2), Vector::Constant(2, 2), circle),
      {.tokens = 4, .heads = 2});
  const auto engine = make_engine(problem, {.engine = EngineName::qmc, .samples = 512});
  const Point start = initial_point(problem, 0.3, 1);
  const double off = check_gradient(*engine, start).relative();
  Trajectory run;
  const FlowSummary summary = integrate_flow(*engine, start, {.time = 8, .outputs = 4}, run);
  write_result(arguments[1], flow_dataset(*engine, run, summary));
  fmt::print("gradient within {:.1e}; {}\n", off, summary.brief());
  return off < 1e-7 && run.loss.back() < 0.9 * run.loss.front() ? 0 : 1;
}
