#include "analysis/minima.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>

#include "core/error.h"
#include "core/index.h"
#include "core/random.h"

namespace headflow {
Point start_number(const Problem& problem, const MinimaOptions& options, int number,
                   bool& of_the_paper) {
  const auto item = static_cast<std::uint64_t>(number);
  const int kind = number % 5;
  of_the_paper = kind == 0;
  Point point = initial_point(problem, options.noise, options.seed, item);
  if (of_the_paper) return point;
  RandomStream stream({options.seed, Purpose::minima, 0}, item);
  const double size = kind == 1 ? 0.3 : kind == 2 ? 1.0 : kind == 3 ? 2.0 : 0.1;
  for (double& x : point.m.reshaped<Eigen::RowMajor>()) x = size * stream.normal();
  point.R *= 0.3 * stream.uniform();
  const auto* mixture = problem.prior().mixture();
  if (kind == 4 && mixture) {
    // As many different components as there are heads, in random order.
    std::vector<std::size_t> order(mixture->components().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i-- > 1;) {
      const double u = stream.uniform() * static_cast<double>(i + 1);
      std::swap(order[i], order[static_cast<std::size_t>(u)]);
    }
    for (int h = 0; h < problem.H(); ++h) {
      point.m.row(h) += mixture->components()[order[at(h) % order.size()]].mean;
    }
  }
  return point;
}

bool same_end(const FixedPoint& a, const FixedPoint& b) {
  if (!a.index || !b.index) return false;  // not looked at: nothing is known of either
  const double in_loss = 1e-9 + 3 * (a.loss_error + b.loss_error);
  if (std::abs(a.loss - b.loss) > in_loss || a.index != b.index) return false;
  // Two places of a flat valley differ in position and in curvature across it.
  if (a.zero_modes > a.symmetries && b.zero_modes > b.symmetries) return true;
  const double scale = std::max(a.eigenvalues.maxCoeff(), b.eigenvalues.maxCoeff());
  const double in_curvature = 1e-3 * scale + a.error + b.error;
  return (a.eigenvalues - b.eigenvalues).cwiseAbs().maxCoeff() < in_curvature;
}

Minima find_minima(const Problem& problem, const EngineOptions& engine,
                   const MinimaOptions& options, const Context& context) {
  std::vector<FixedPoint> ends(at(options.starts));
  std::vector<char> of_paper(ends.size()), done(ends.size(), 0);
  std::atomic<bool> stop = false;
  std::mutex mutex;
  int count = 0;
  // Of a start there is nothing to tell but that it is done.
  class Quiet final : public Observer {
   public:
    explicit Quiet(const Context& outer) : outer_(outer) {}
    Wish wish() const override { return outer_.observer ? outer_.observer->wish() : Wish::go_on; }

   private:
    const Context& outer_;
  };
  const Context of_start = context.serial().watched_by(std::make_shared<Quiet>(context));
  context.executor->run(ends.size(), [&](std::size_t i, int /*worker*/) {
    if (stop || !context.goes_on()) {
      stop = true;
      return;
    }
    bool paper = false;
    const Point start = start_number(problem, options, static_cast<int>(i), paper);
    try {
      ends[i] = find_fixed_point(problem, engine, start, {}, of_start);
    } catch (const Error& error) {  // too many nodes, say: one start that did not arrive
      ends[i].message = error.what();
    } catch (const Interrupted&) {
      stop = true;
    }
    of_paper[i] = paper;
    if (stop || !context.goes_on()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    done[i] = 1;
    ++count;
    context.status({.fraction = static_cast<double>(count) / options.starts,
                    .count = static_cast<double>(count),
                    .total = static_cast<double>(options.starts),
                    .unit = "starts"});
    if (!context.goes_on()) stop = true;
  });

  Minima out;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!done[i]) continue;
    ++out.starts;
    out.paper_starts += of_paper[i];
    if (!ends[i].converged) {
      ++out.failed;
      continue;
    }
    auto it = std::find_if(out.found.begin(), out.found.end(),
                           [&](const Minimum& other) { return same_end(other.end, ends[i]); });
    if (it == out.found.end()) {
      out.found.push_back({ends[i], 0, 0});
      it = out.found.end() - 1;
    }
    ++it->starts;
    it->paper_starts += of_paper[i];
  }
  if (out.starts < options.starts) out.outcome = MinimaOutcome::interrupted;
  std::sort(out.found.begin(), out.found.end(),
            [](const Minimum& a, const Minimum& b) { return a.end.loss < b.end.loss; });
  return out;
}

}  // namespace headflow
