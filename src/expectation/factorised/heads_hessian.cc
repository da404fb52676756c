#include "expectation/factorised/heads_hessian.h"

namespace headflow::factorised {
namespace {

constexpr double kStep = 1e-4;

class Differences {
 public:
  Differences(const QuadratureProblem& problem, const HeadsPlan& plan, const LawCoordinates& x,
              const TokenLaws<double>& laws, const std::vector<double>& blocks,
              Heads<double>& heads, Vector& gradient, Matrix& second)
      : problem_(problem),
        plan_(plan),
        x_(x),
        laws_(laws),
        blocks_(blocks),
        heads_(heads),
        gradient_(gradient),
        second_(second) {
    LossAndBars<double> bars;
    heads.evaluate(laws, blocks, false, bars);
    gradient_ = x.gather(bars);
    second_ = Matrix::Zero(x.size(), x.size());
  }

  void run() {
    for (int h = 0; h < problem_.H; ++h) {
      if (problem_.roles.bias >= 0) bias(h);
      for (int kind = 0; kind < x_.kinds(); ++kind) variance(kind, h);
      for (int c = 1; c < problem_.signal->count(); ++c) mean(c, h);
      heads_.again(laws_, blocks_, h, true);
    }
    for (int kind = 0; kind < x_.kinds() && !plan_.pairs.empty(); ++kind) covariances(kind);
    if (problem_.roles.scale >= 0) scale();
  }

 private:
  Vector at_laws(const TokenLaws<double>& laws, const std::vector<double>& blocks, int h,
                 bool new_tables) {
    LossAndBars<double> bars;
    heads_.again(laws, blocks, h, new_tables);
    heads_.sum(bars);
    return x_.gather(bars);
  }
  /// Over three points, as there may be no laws on one side: f'(0) = (4 f(d) - 3 f(0) - f(2d)) /
  /// 2d.
  static Vector slope(const Vector& at0, const Vector& at1, const Vector& at2, double step) {
    return (4 * (at1 - at0) - (at2 - at0)) / (2 * step);
  }

  /// How far apart two scores are; scores that move together have a loss that changes on this
  /// scale.
  double apart(int h, int k) const {
    double out = HUGE_VAL;
    for (int c = 0; c < laws_.components; ++c) {
      out = std::min(out, laws_.q(c, h, h) + laws_.q(c, k, k) - 2 * laws_.q(c, h, k));
    }
    return std::max(0.0, out);
  }

  void bias(int h) {
    const int i = problem_.roles.bias + h;
    std::vector<double> blocks = blocks_;
    blocks[at(i)] = blocks_[at(i)] + kStep;
    const Vector above = at_laws(laws_, blocks, h, false);
    blocks[at(i)] = blocks_[at(i)] - kStep;
    second_.col(x_.block(i)) = (above - at_laws(laws_, blocks, h, false)) / (2 * kStep);
  }

  void variance(int kind, int h) {
    double scale = laws_.q(0, h, h);
    for (int k = 0; k < problem_.H; ++k) {
      if (k != h) scale = std::min(scale, apart(h, k));
    }
    const double step = kStep * (1 + scale);
    TokenLaws<double> laws = laws_;
    const auto moved = [&](double by) {
      for (int c = 0; c < laws.components; ++c) {
        if (x_.kind_of(c) == kind) laws.q(c, h, h) = laws_.q(c, h, h) + by;
      }
      return at_laws(laws, blocks_, h, true);
    };
    const Vector once = moved(step);
    second_.col(x_.covariance(kind, h, h)) = slope(gradient_, once, moved(2 * step), step);
  }

  void mean(int c, int h) {
    if (x_.mean(c, h) < 0) return;
    TokenLaws<double> laws = laws_;
    laws.mean(c, h) = laws_.mean(c, h) + kStep;
    const Vector above = at_laws(laws, blocks_, h, true);
    laws.mean(c, h) = laws_.mean(c, h) - kStep;
    second_.col(x_.mean(c, h)) = (above - at_laws(laws, blocks_, h, true)) / (2 * kStep);
  }

  /// Of all pairs at once, as each is moved by its own covariance only; towards smaller ones.
  void covariances(int kind) {
    const std::size_t n = plan_.pairs.size();
    Vector step(static_cast<Eigen::Index>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const int I = plan_.pairs[i].I, J = plan_.pairs[i].J;
      double size = HUGE_VAL;
      for (int c = 0; c < laws_.components; ++c) {
        size = std::min(size, std::sqrt(std::max(0.0, laws_.q(c, I, I) * laws_.q(c, J, J))));
      }
      const double sign = laws_.q(0, I, J) > 0 ? -1 : 1;
      step[static_cast<Eigen::Index>(i)] =
          sign * std::min(0.1 * size, kStep * (1 + std::min(size, apart(I, J))));
    }
    std::vector<Vector> at_step[3];
    TokenLaws<double> laws = laws_;
    for (int s = 0; s < 3; ++s) {
      for (std::size_t i = 0; i < n; ++i) {
        const int I = plan_.pairs[i].I, J = plan_.pairs[i].J;
        for (int c = 0; c < laws.components; ++c) {
          if (x_.kind_of(c) != kind) continue;
          laws.q(c, I, J) = laws.q(c, J, I) =
              laws_.q(c, I, J) + s * step[static_cast<Eigen::Index>(i)];
        }
      }
      if (s > 0) heads_.again(laws, blocks_);
      for (std::size_t i = 0; i < n; ++i) {
        LossAndBars<double> bars;
        heads_.of_pair(i, bars);
        at_step[s].push_back(x_.gather(bars));
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double by = step[static_cast<Eigen::Index>(i)];
      if (by == 0) continue;  // a head without scores: nothing depends on it
      second_.col(x_.covariance(kind, plan_.pairs[i].I, plan_.pairs[i].J)) =
          slope(at_step[0][i], at_step[1][i], at_step[2][i], by);
    }
    heads_.again(laws_, blocks_);
  }

  /// First derivatives are of second order in it, so that this is exact.
  void scale() {
    const std::size_t i = at(problem_.roles.scale);
    std::vector<double> blocks = blocks_;
    const double step = 0.1 * std::max(1.0, std::abs(blocks[i]));
    LossAndBars<double> above, below;
    blocks[i] = blocks_[i] + step;
    heads_.evaluate(laws_, blocks, false, above);
    blocks[i] = blocks_[i] - step;
    heads_.evaluate(laws_, blocks, false, below);
    second_.col(x_.block(problem_.roles.scale)) =
        (x_.gather(above) - x_.gather(below)) / (2 * step);
  }

  const QuadratureProblem& problem_;
  const HeadsPlan& plan_;
  const LawCoordinates& x_;
  const TokenLaws<double>& laws_;
  const std::vector<double>& blocks_;
  Heads<double>& heads_;
  Vector& gradient_;
  Matrix& second_;
};

}  // namespace

double heads_hessian_cost(const QuadratureProblem& problem, const LawCoordinates& x) {
  const int of_a_head = x.kinds() + x.means() + (problem.roles.bias >= 0);
  return 1 + 2 * (2 * of_a_head + 1) + 3 * x.kinds() + 2 * (problem.roles.scale >= 0);
}

void heads_hessian(const QuadratureProblem& problem, const HeadsPlan& plan,
                   const LawCoordinates& coordinates, const TokenLaws<double>& laws,
                   const std::vector<double>& blocks, Heads<double>& heads, Vector& gradient,
                   Matrix& second) {
  Differences(problem, plan, coordinates, laws, blocks, heads, gradient, second).run();
}

}  // namespace headflow::factorised
