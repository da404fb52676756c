#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/effort.h"
#include "dynamics/flow.h"
#include "io/keys.h"
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

/// How the end of training is found.
enum class EndSearch {
  newton,  ///< past saddles, with the Hessian's signs
  flow,    ///< no Hessian; not beyond flow.time
};
template <>
inline constexpr Named<EndSearch> kNames<EndSearch>[] = {{EndSearch::newton, "newton"},
                                                         {EndSearch::flow, "flow"}};

/// Where the Hessian is taken.
enum class HessianAt {
  point,   ///< [point]
  origin,  ///< m = R = 0, b as given, attention 1/L
  saddle,  ///< where the flow of equal heads ends
};
template <>
inline constexpr Named<HessianAt> kNames<HessianAt>[] = {
    {HessianAt::point, "point"}, {HessianAt::origin, "origin"}, {HessianAt::saddle, "saddle"}};

/// Every option of the program: a plain value, which can be kept and copied.
struct Configuration {
  ProblemOptions problem;
  PointOptions point;
  EngineOptions engine;
  FlowOptions flow;
  SgdOptions sgd;
  std::string output;     ///< result file
  std::string save_init;  ///< file for the start of SGD
  int starts = 200;       ///< of a search for minima
  EndSearch end_search = EndSearch::newton;
  double end_gradient = 1e-8;  ///< norm of the gradient where training counts as ended
  HessianAt hessian_at = HessianAt::point;
  std::vector<LimitKind> theory = {LimitKind::flow};  ///< what SGD is compared with
  Effort verify_effort = Effort::full;
  int threads = 0;  ///< 0 for all cores; never changes a result
  double compare_rtol = 1e-6, compare_atol = 1e-8;
  double checkpoint_seconds = 60.0;  ///< between two checkpoints of SGD
  std::string taken_from;            ///< where take_recorded_start took the start from, in words
};

/// A configuration, and the table of keys bound to it.
struct Session : Configuration {
  Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Takes all values of a configuration; where they were written is not known to the keys.
  void take(const Configuration& values) { static_cast<Configuration&>(*this) = values; }

  Keys keys;

  /// The configuration that reproduces a flow.
  std::string flow_configuration() const { return keys.toml({"problem", "run", "point", "flow"}); }

  /// The configuration that reproduces runs of SGD.
  std::string sgd_configuration() const { return keys.toml({"problem", "run", "point", "sgd"}); }

  /// The configuration that reproduces a comparison.
  std::string compare_configuration() const {
    return keys.toml({"problem", "run", "point", "sgd", "compare"});
  }

  /// If flow.init_from is given, reads that file into [point] and problem.p, and flow.init becomes
  /// "point": the configuration then reproduces the run without the file. flow.init_noise becomes
  /// what it is. Call it before the problem is made. Returns a remark, or nothing. Throws FileError
  /// and OptionError.
  std::string take_recorded_start();

  /// Throws OptionError if [end] breaks a rule.
  void check_end() const;

  /// Start of the flow, by flow.init, init_noise and init_<block>.
  Point flow_start(const Problem& problem) const;
};

}  // namespace headflow
