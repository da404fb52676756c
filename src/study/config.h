#pragma once

// Every option of headflow: a plain value, which can be copied and kept, and compared by its text
// (config_text). What computes takes it, or the parts of it that it needs; files, flags, Python's
// keywords and the recorded provenance are views of it through one table of keys (keys.h).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/effort.h"
#include "core/fingerprint.h"
#include "dynamics/flow.h"
#include "sgd/limit.h"
#include "sgd/sgd.h"

namespace headflow {

/// The [point] table: order parameters. What is not given takes its initial value:
/// m = 0, R = eta I, and blocks as the activation says.
struct PointOptions {
  std::optional<Matrix> m, R;
  std::map<std::string, Matrix, std::less<>> blocks;  ///< of any activation, by name

  /// The point in the problem's frame, from m_hf = k_h . k*_f. Throws OptionError if a shape does
  /// not fit the problem.
  Point make(const Problem& problem) const;
};

/// The [loss] table: what is computed besides the loss, at a point or at the end of training.
struct LossOptions {
  std::int64_t excess = 0;  ///< points for the excess risk (excess_risk.h); 0: it is not computed

  /// Throws OptionError: also if the excess risk is wanted where no posterior is known.
  void check(const Problem& problem) const;
};

/// How the end of training is found.
enum class EndSearch {
  newton,  ///< past saddles, with the Hessian's signs
  flow,    ///< no Hessian; not beyond flow.time
};
template <>
inline constexpr Named<EndSearch> kNames<EndSearch>[] = {{EndSearch::newton, "newton"},
                                                         {EndSearch::flow, "flow"}};

/// The [end] table: where training counts as ended.
struct EndOptions {
  EndSearch search = EndSearch::newton;
  double gradient = 1e-8;  ///< norm of the gradient

  /// Throws OptionError.
  void check() const;
};

/// Where the Hessian is taken.
enum class HessianAt {
  point,   ///< [point]
  origin,  ///< m = R = 0, equal heads, attention 1/L
  saddle,  ///< where the flow of equal heads ends
};
template <>
inline constexpr Named<HessianAt> kNames<HessianAt>[] = {
    {HessianAt::point, "point"}, {HessianAt::origin, "origin"}, {HessianAt::saddle, "saddle"}};

struct HessianOptions {
  HessianAt at = HessianAt::point;
};

/// The [compare] table: what SGD is compared with.
struct CompareOptions {
  std::vector<LimitKind> theory = {LimitKind::flow};
  double rtol = 1e-6, atol = 1e-8;  ///< of the limits' steps
};

struct MinimaTable {
  int starts = 200;
};

/// The [verify] table: what is measured, and with how much work.
struct VerifyOptions {
  Effort effort = Effort::full;
  std::optional<std::vector<std::string>> only = {};  ///< words of statements; none: all of them
  /// Folder of the paper's figures: what they have computed, too, is taken from there.
  std::optional<std::string> results = {};
};

/// The [program] table: nothing of it changes a number.
struct ProgramOptions {
  int threads = 0;  ///< 0 for all cores
};

/// The [result] table: what becomes of a result.
struct ResultOptions {
  std::string output;                ///< result file
  std::string save_init;             ///< file for the start of SGD
  double checkpoint_seconds = 60.0;  ///< between two checkpoints of SGD
};

struct Config {
  ProblemOptions problem;
  PointOptions point;
  EngineOptions run;
  LossOptions loss;
  FlowOptions flow;
  EndOptions end;
  SgdOptions sgd;
  CompareOptions compare;
  HessianOptions hessian;
  MinimaTable minima;
  VerifyOptions verify;
  ProgramOptions program;
  ResultOptions result;
};

/// Start of the flow, by flow.init, init_noise and init_<block>. A start from a file must have been
/// taken already (io/recorded_start.h). Throws OptionError.
Point flow_start(const Config& config, const Problem& problem);
/// Throws OptionError if one has not.
void check_start_was_read(const Config& config);

/// Starts of SGD, one for each run, by sgd.init; the problem without overlaps p. Throws
/// OptionError.
std::vector<SgdState> sgd_starts(const Config& config, const Problem& without_overlaps);

}  // namespace headflow
