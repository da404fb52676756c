#pragma once

// Independent runs of SGD, recorded at chosen steps. All runs advance together, so that what there
// is can be saved at any time and taken up again.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/spacing.h"
#include "sgd/method.h"

namespace headflow {

enum class SgdAlgorithm {
  reduced,  ///< exact in law, at a cost that does not depend on D
  direct,   ///< vectors of dimension D
};
template <>
inline constexpr Named<SgdAlgorithm> kNames<SgdAlgorithm>[] = {{SgdAlgorithm::reduced, "reduced"},
                                                               {SgdAlgorithm::direct, "direct"}};

enum class SgdInit {
  law,    ///< the exact law of the overlaps at D
  point,  ///< [point], problem.p
};
template <>
inline constexpr Named<SgdInit> kNames<SgdInit>[] = {{SgdInit::law, "law"},
                                                     {SgdInit::point, "point"}};

enum class SgdLoss {
  batch,       ///< of each batch
  population,  ///< that, and the one of the limit of large D, by an engine
};
template <>
inline constexpr Named<SgdLoss> kNames<SgdLoss>[] = {{SgdLoss::batch, "batch"},
                                                     {SgdLoss::population, "population"}};

/// The [sgd] table of a configuration.
struct SgdOptions {
  SgdAlgorithm method = SgdAlgorithm::reduced;
  std::int64_t dim = 10'000;    ///< D
  std::int64_t batch = 10'000;  ///< samples of a step
  double lr = 0.02;             ///< learning rate gamma
  std::int64_t steps = 0;       ///< 0: tau / lr
  double tau = 100.0;           ///< training time lr * steps, if steps is 0
  int runs = 1;                 ///< independent runs
  int first_run = 0;            ///< number of the first one: others than 0, 1, ... of this seed
  SgdInit init = SgdInit::law;  ///< start
  int outputs = 200;            ///< output times besides 0
  Spacing spacing = Spacing::linear;  ///< of the output times
  SgdLoss loss = SgdLoss::batch;

  /// Throws OptionError for the first option that breaks a rule, or if the runs would not fit into
  /// memory with this many workers.
  void check(const Problem& problem, int workers = 1) const;
  std::int64_t total_steps() const;
  /// Steps after which the state is recorded: 0, ..., total_steps().
  std::vector<std::int64_t> output_steps() const;
};

struct SgdRecord {
  SgdState state;
  BatchLoss loss;  ///< of the next batch
};

/// What a run depends on, at a step where all runs are.
struct SgdCheckpoint {
  std::int64_t step = 0;                         ///< taken so far
  std::vector<std::vector<double>> saved;        ///< [run]
  std::vector<std::vector<SgdRecord>> recorded;  ///< [run][output]
};

class Sgd {
 public:
  /// One start for each run.
  Sgd(const Problem& problem, const SgdOptions& options, std::uint64_t seed,
      const std::vector<SgdState>& starts, const Context& context = {});

  /// Starts from the exact law of the overlaps, one for each run.
  static std::vector<SgdState> starts(const Problem& problem, const SgdOptions& options,
                                      std::uint64_t seed);

  bool finished() const { return next_ == output_steps_.size() || diverged_; }
  /// Goes on to the next output, or for about a second of work if that is less. False if it was
  /// asked to stop: everything is then as it was before the call.
  bool advance();

  std::int64_t step() const { return step_; }  ///< taken so far
  bool diverged() const { return diverged_; }
  const std::vector<std::int64_t>& output_steps() const { return output_steps_; }
  const std::vector<std::vector<SgdRecord>>& recorded() const { return recorded_; }

  SgdCheckpoint checkpoint() const;
  /// The runs then go on as if they had never stopped. Throws Error if it is not of such runs.
  void restore(const SgdCheckpoint& checkpoint);

 private:
  void check(const SgdCheckpoint& checkpoint) const;

  SgdOptions options_;
  Context context_;
  Workers workers_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::unique_ptr<SgdMethod>> runs_;
  std::vector<std::int64_t> output_steps_;
  std::vector<std::vector<SgdRecord>> recorded_;
  std::size_t next_ = 0;  ///< output
  std::int64_t step_ = 0, steps_at_once_ = 1;
  bool diverged_ = false;
};

}  // namespace headflow
