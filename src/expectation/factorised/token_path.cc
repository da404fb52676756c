#include "expectation/factorised/token_path.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "expectation/factorised/path_curvature.h"

namespace headflow::factorised {
namespace {

constexpr double kMostPathBytes = 165e6;  // nodes and the numbers t of them

class TokenPath final : public Quadrature {
 public:
  TokenPath(const QuadratureProblem& problem, const std::shared_ptr<TokenNodes>& nodes,
            const Parameters<double>& point, int log2_nodes)
      : problem_(problem),
        sums_(problem, nodes, path_value(point, problem.roles.bias), log2_nodes) {}

  void evaluate(const Parameters<double>& point, bool /*with_defect: it costs nothing*/,
                LossAndGradient<double>& out) override {
    PathPoint grad;
    const PathPoint value = path_value(point, problem_.roles.bias);
    sums_.run(value, nullptr);
    pull_back(value, grad);
    out.loss = sums_.loss().loss().value;
    out.defect = sums_.loss().defect();
    put(
        grad, point.blocks.size(), [](double x) { return x; }, out);
  }

  /// Of the gradient, the tangents only.
  void evaluate(const Parameters<Dual>& point, LossAndGradient<Dual>& out) override {
    const PathPoint value = path_value(point, problem_.roles.bias);
    PathPoint tangent = path_tangent(point, problem_.roles.bias), grad;
    const bool without_R = value.R.isZero(0.0);
    const Matrix R = tangent.R;
    if (without_R) tangent.R.setZero();
    sums_.stay_at(value);
    const std::vector<Matrix> bars = sums_.bars();
    Matrix along_R;
    if (without_R && !R.isZero(0.0)) along_R = path_curvature_along_R(sums_, value);
    sums_.run(value, &tangent);
    out.loss = sums_.loss().loss();
    pull_back(value, grad);
    for (std::size_t k = 0; k < bars.size(); ++k) {
      const PathGroup& group = sums_.groups()[k];
      const Matrix slope =
          group.gauge.pull_back_slope(sums_.turned(k), bars[k], score_matrix(group.root, tangent));
      add_scores(group.root, slope, grad);
    }
    if (without_R) grad.R.setZero();
    if (along_R.size() > 0) grad.R = along_R * R;
    put(
        grad, point.blocks.size(), [](double x) { return Dual(0, x); }, out);
  }

  bool hessian(const Parameters<double>& point, Matrix& out) override {
    return path_curvature(sums_, path_value(point, problem_.roles.bias), point.blocks.size(), out);
  }

  WholeHessian whole_hessian() const override { return WholeHessian::exact; }
  bool quasi_random() const override { return true; }

  void recentre(const Parameters<double>& point) override {
    sums_.recentre(path_value(point, problem_.roles.bias));
  }

  std::int64_t nodes() const override {
    return 2 * kLanes * sums_.groups_of_nodes() * problem_.signal->count() * (problem_.H + 8);
  }

 private:
  template <class S, class Make>
  void put(const PathPoint& grad, std::size_t blocks, const Make& make,
           LossAndGradient<S>& out) const {
    out.grad.m.assign(at(grad.m.size()), S(0.0));
    out.grad.R.assign(at(grad.R.size()), S(0.0));
    out.grad.blocks.assign(blocks, S(0.0));
    for (Eigen::Index i = 0; i < grad.m.size(); ++i) out.grad.m[at(i)] = make(grad.m.data()[i]);
    for (Eigen::Index i = 0; i < grad.R.size(); ++i) out.grad.R[at(i)] = make(grad.R.data()[i]);
    for (Eigen::Index h = 0; h < grad.b.size(); ++h) {
      out.grad.blocks[at(problem_.roles.bias + h)] = make(grad.b[h]);
    }
    out.bars.clear();
  }

  /// The gradient, or its tangent but for the curvature of the gauge.
  void pull_back(const PathPoint& value, PathPoint& grad) const {
    grad = PathPoint::zero(value.m.rows(), value.m.cols());
    for (std::size_t k = 0; k < sums_.groups().size(); ++k) {
      const PathGroup& group = sums_.groups()[k];
      add_scores(group.root, group.gauge.pull_back(sums_.turned(k), sums_.bars()[k]), grad);
    }
    if (value.R.isZero(0.0)) grad.R.setZero();
    for (int c = 0; c < problem_.signal->count(); ++c) {
      const Vector mean = sums_.shift_bars().row(c).transpose();
      grad.b += mean;
      grad.m += mean * problem_.signal->mean[at(c)].transpose();
    }
  }

  QuadratureProblem problem_;
  PathSums sums_;
};

}  // namespace

int most_path_nodes(const QuadratureProblem& problem, int features) {
  const double bytes = 4.0 * (features + problem.H) + 16.0 * problem.signal->count();
  return std::min(kMostLog2, static_cast<int>(std::log2(kMostPathBytes / bytes)));
}

std::unique_ptr<Quadrature> token_path(const QuadratureProblem& problem,
                                       const std::shared_ptr<TokenNodes>& nodes,
                                       const Parameters<double>& point, int log2_nodes) {
  return std::make_unique<TokenPath>(problem, nodes, point, log2_nodes);
}

}  // namespace headflow::factorised
