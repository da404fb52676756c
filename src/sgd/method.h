#pragma once

// One run of online SGD,
//   k_h <- k_h - rate grad_h l,  l = (1/N) sum over a fresh batch of |y - y^|^2 / D,
// and b, v likewise. Two methods draw from the same law: `reduced` (reduced.cc) never forms a
// vector of dimension D, `direct` (direct.cc) does nothing else.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/workers.h"
#include "sgd/state.h"

namespace headflow {

/// What a run needs besides its problem.
struct SgdSetting {
  std::int64_t dimension = 0;  ///< D
  std::int64_t batch = 0;      ///< N
  double rate = 0;             ///< learning rate gamma
  std::uint64_t seed = 0;
  std::uint32_t run = 0;  ///< number of the independent run; below 2^24
};

struct BatchLoss {
  double mean = 0;
  double error = 0;  ///< standard error of the mean over the batch
};

/// From the means of the loss and of its square over n samples. One sample tells no error
/// (infinite); numbers that overflow have none that is known (NaN).
inline BatchLoss batch_loss(double mean, double square, double n) {
  if (!std::isfinite(mean) || !std::isfinite(square)) return {mean, std::nan("")};
  return {mean, n > 1 ? std::sqrt(std::max(0.0, square - mean * mean) / (n - 1)) : HUGE_VAL};
}

class SgdMethod {
 public:
  virtual ~SgdMethod() = default;

  /// Takes the step number `step` (from 0). The batch is a pure function of seed, run and step:
  /// the same bits whatever the number of threads, and after a restart. The observer is asked every
  /// few samples whether to go on; false if not: the state is then that before the step.
  virtual bool try_step(std::int64_t step, const Context& context, BatchLoss& loss) = 0;
  /// Throws Interrupted if it is told to stop.
  BatchLoss step(std::int64_t step, const Context& context = {}) {
    BatchLoss loss;
    if (!try_step(step, context, loss)) throw Interrupted();
    return loss;
  }
  virtual SgdState state() const = 0;

  /// Everything that a later step depends on.
  virtual std::vector<double> save() const = 0;
  /// Throws Error if these are not the numbers of such a run.
  virtual void restore(const std::vector<double>& saved) = 0;
};

/// Exact in law for every D >= F + H; time and memory do not depend on D, and memory not on the
/// batch. Cost of a step: about 1.5 ns x batch x L (F + H + n) random numbers, n of order
/// H / sqrt(L), and as much arithmetic.
std::unique_ptr<SgdMethod> make_reduced(const Problem& problem, const SgdSetting& setting,
                                        const SgdState& start, const Workers& workers);

/// The definition: vectors k, k*, X in D dimensions. Cost of a step: batch x L x D normals; memory
/// 8 (L + H) D bytes a thread, up to 16 of them (sgd/memory.h).
std::unique_ptr<SgdMethod> make_direct(const Problem& problem, const SgdSetting& setting,
                                       const SgdState& start, const Workers& workers);

}  // namespace headflow
