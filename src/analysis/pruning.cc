#include "analysis/pruning.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/index.h"
#include "core/matrix.h"

namespace headflow {
namespace {

constexpr std::uint32_t kDraws = 4;  // of samples

}  // namespace

Point with_heads(const Point& point, const std::vector<int>& kept) {
  const auto n = static_cast<Eigen::Index>(kept.size());
  Point out{Matrix(n, point.features()), {}, point.blocks.of_heads(kept)};
  Matrix rows(n, point.R.cols());
  for (Eigen::Index i = 0; i < n; ++i) {
    const int h = kept[at(i)];
    out.m.row(i) = point.m.row(h);
    rows.row(i) = point.R.row(h);
  }
  out.R = positive_square_root(rows * rows.transpose());
  return out;
}

std::vector<PruningStep> prune(const Problem& problem, const Point& point,
                               const EngineOptions& options, const Context& context) {
  const auto loss_of = [&](const std::vector<int>& kept) {
    const Problem fewer = problem.with_heads(static_cast<int>(kept.size()));
    const Point left = with_heads(point, kept);
    const auto engine = make_engine(fewer, options, {&left, false}, context);
    Evaluation e;
    PruningStep out;
    out.error_kind = engine->error_kind();
    if (!engine->sampled()) {
      engine->evaluate(left, {}, e);
      out.loss = e.loss;
      out.error = e.loss_error;
      return out;
    }
    // Heads lose too little on the samples that they were trained on.
    double variance = 0;
    for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
      engine->refresh(kFreshDraws + draw);
      engine->evaluate(left, {}, e);
      out.loss += e.loss / kDraws;
      variance += e.loss_error * e.loss_error / (kDraws * kDraws);
    }
    out.error = std::sqrt(variance);
    return out;
  };
  std::vector<int> kept(at(problem.H()));
  std::iota(kept.begin(), kept.end(), 0);
  std::vector<PruningStep> steps = {loss_of(kept)};
  while (kept.size() > 1) {
    PruningStep best;
    best.loss = std::numeric_limits<double>::infinity();
    std::vector<double> instead(at(problem.H()), std::numeric_limits<double>::quiet_NaN());
    for (const int h : kept) {
      std::vector<int> without = kept;
      std::erase(without, h);
      const PruningStep left = loss_of(without);
      instead[at(h)] = left.loss;
      if (left.loss >= best.loss) continue;
      best = left;
      best.removed = h;
    }
    best.instead = std::move(instead);
    std::erase(kept, best.removed);
    steps.push_back(best);
  }
  return steps;
}

}  // namespace headflow
