#pragma once

// Engines: a problem and a point in; loss, gradient and their errors out.
//
//   E(m, R, b, v) = E[ sum_l ( delta_{l,eps} - (1/H) sum_h sigma(chi, b, v; h)_l )^2 ]
//   chi_hl = sum_f m_hf chi*_fl + sum_h' R_hh' xi_h'l,  chi*_l ~ N(delta_{l,eps} theta, I_F)
//
// Every engine evaluates this same function; they differ in how, and in what their error
// means. Between two calls of refresh() or adapt() an engine is a smooth deterministic function.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/context.h"
#include "core/error_kind.h"
#include "model/problem.h"

namespace headflow {

enum class EngineName {
  automatic,   ///< the cheapest that meets the tolerance
  factorised,  ///< no samples
  qmc,         ///< scrambled Sobol' points
  mc,          ///< Monte Carlo
};
template <>
inline constexpr Named<EngineName> kNames<EngineName>[] = {{EngineName::automatic, "auto"},
                                                           {EngineName::factorised, "factorised"},
                                                           {EngineName::qmc, "qmc"},
                                                           {EngineName::mc, "mc"}};

/// How samples are stored; arithmetic is in double.
enum class Precision { float64, float32 };
template <>
inline constexpr Named<Precision> kNames<Precision>[] = {{Precision::float64, "float64"},
                                                         {Precision::float32, "float32"}};

/// Samples of an engine that is not told how many.
inline constexpr std::int64_t kDefaultSamples = 100'000;

struct EngineOptions {
  EngineName engine = EngineName::automatic;
  double tolerance = 1e-6;                   ///< absolute error asked of auto and factorised
  std::int64_t samples = 0;                  ///< of mc and qmc, all randomisations; 0: 100,000
  int randomisations = 16;                   ///< of qmc, independent
  std::uint64_t seed = 1;                    ///< seed of every random number
  Precision precision = Precision::float64;  ///< storage of the samples
  std::int64_t memory = 2048;                ///< MiB of samples to keep; beyond, they are made anew
};

/// What to compute beyond the loss, its error and the gradient.
struct Request {
  bool loss_error = true;  ///< may be left out where it costs extra (out.loss_error is then 0)
  bool gradient_error = false;
  bool second_moment = false;  ///< E[sum_l g_hl g_h'l] with g = d loss / d chi
};

struct Evaluation {
  double loss = 0;
  double loss_error = 0;
  Point grad;
  Point grad_error;      ///< if requested
  Matrix second_moment;  ///< if requested
};

/// Independent sets of samples of one seed (StreamKey::draw). Training uses those below
/// kFreshDraws; from there on they are for looking at what was trained, which must not have seen
/// them.
inline constexpr std::uint32_t kMostDraws = 1 << 24, kFreshDraws = kMostDraws - 256;

/// What an engine has of all second derivatives at once.
enum class WholeHessian {
  none,
  differences,  ///< of first derivatives, good to about 1e-8
  exact,        ///< those of its discrete loss
};

class Engine {
 public:
  explicit Engine(Problem problem) : problem_(std::move(problem)) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Problem& problem() const { return problem_; }
  virtual std::string_view name() const = 0;
  virtual ErrorKind error_kind() const = 0;
  /// True if it works with what random samples it has: they can be replaced (refresh), and what
  /// is trained on them adapts to them. Else it plans its nodes for `tolerance`.
  bool sampled() const { return error_kind() != ErrorKind::refinement; }
  /// The absolute error that was asked for; 0 if sampled().
  virtual double tolerance() const { return 0; }
  /// False if Request::second_moment is beyond the engine.
  virtual bool has_second_moment() const { return true; }
  /// Samples or nodes of one evaluation.
  virtual std::int64_t samples() const = 0;

  /// Not thread-safe: an engine has scratch space of its own. Throws NotFinite if a result is not
  /// finite, Interrupted if the context says so, Error if the engine cannot do this point.
  /// Errors hold where the nodes were placed and where `follow` was asked; far from there, of a
  /// point that nobody looked at, they may be too small (by 5 in moved_nodes_test.cc).
  virtual void evaluate(const Point& point, const Request& request, Evaluation& out) = 0;

  /// Replaces the samples by the independent set number `draw` (0 is the first one), below
  /// kMostDraws. Engines without samples have nothing to replace.
  virtual void refresh(std::uint32_t /*draw*/) {}

  /// Places the nodes for points near this one; engines with samples have nothing to place.
  /// An engine that was never adapted adapts itself to the first point it sees.
  virtual void adapt(const Point& /*point*/) {}
  /// Adapts if the point is so far from where the nodes were placed that they may fail it.
  virtual bool follow(const Point& /*point*/) { return false; }

  /// Hessian of the loss times a direction, at a point, with the nodes of `evaluate`. Here by
  /// differences of the gradient, good to about 1e-9; an engine may do better.
  virtual void hessian_product(const Point& point, const Point& direction, Point& out);
  /// The whole Hessian, in the order of Point::packed, if there is a faster way than products with
  /// all directions; false if there is none. It need not be symmetric to the last digit. `change`,
  /// if it is asked for and known (else empty), is what a rule with a quarter of the nodes says
  /// less: the error, rather too large.
  virtual bool hessian(const Point& /*point*/, Matrix& /*out*/, Matrix* /*change*/ = nullptr) {
    return false;
  }
  /// Whether there is, with the nodes as they are.
  virtual WholeHessian whole_hessian() const { return WholeHessian::none; }
  /// True if the nodes are quasi-random ones, which stay where they are: loss, gradient and Hessian
  /// are exactly those of one function, whose error is what was asked for and not much less.
  virtual bool quasi_random() const { return false; }
  /// True if exact products cost no more than differences of gradients.
  virtual bool has_cheap_products() const { return false; }
  /// True if its cost may grow by orders of magnitude as a point moves.
  virtual bool cost_may_explode() const { return false; }

  /// Why this engine was taken, if it was chosen by `auto`.
  const std::string& reason() const { return reason_; }
  void set_reason(std::string reason) { reason_ = std::move(reason); }

 protected:
  /// Throws NotFinite unless loss, gradient and what there is of errors are finite.
  void check_finite(const Evaluation& result) const;

 private:
  Problem problem_;
  std::string reason_;
};

/// What an engine will be used for; `auto` chooses by it.
struct EngineUse {
  const Point* point = nullptr;  ///< where; null: the initial point m = 0, R = eta I
  bool second_moment = false;
};

/// The engine of that name; `auto` is the cheapest one that meets the tolerance at the point
/// (choose_engine.cc), its reason() says why. Throws OptionError for a bad option.
std::unique_ptr<Engine> make_engine(const Problem& problem, const EngineOptions& options,
                                    const EngineUse& use = {}, const Context& context = {});

}  // namespace headflow
