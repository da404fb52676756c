#pragma once

// The flow of the order parameters,
//   dm/dtau = -grad_m E,  dR/dtau = -grad_R E,  db/dtau = -grad_b E,  dv/dtau = -grad_v E.
//
// With kappa = learning rate * D / batch size > 0 the limit of SGD is not gradient flow:
//   d(R R^T)/dtau = -(grad_R E R^T + R grad_R E^T) + kappa E[ sum_l g_hl g_h'l ],
// with g = d loss / d chi; m, b and v are unchanged. R R^T is then the state that is integrated
// (the equation for R itself is singular at R = 0) and R is reported as its square root.
//
// At a learning rate gamma of order one the limit is not a flow but a map, one step of SGD:
//   m' = m - gamma grad_m E, b and v likewise, and
//   R R^T' = (R - gamma grad_R E) (R - gamma grad_R E)^T + gamma kappa E[ sum_l g_hl g_h'l ].

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/spacing.h"
#include "expectation/engine.h"

namespace headflow {

/// Where a flow starts.
enum class FlowInit {
  noise,  ///< the paper's initial law
  point,  ///< [point]
  file,   ///< a recorded run; init_from implies it
};
template <>
inline constexpr Named<FlowInit> kNames<FlowInit>[] = {
    {FlowInit::noise, "noise"}, {FlowInit::point, "point"}, {FlowInit::file, "file"}};

enum class Scheme {
  euler,        ///< fixed steps
  adaptive,     ///< explicit, with adaptive steps
  implicit,     ///< with adaptive steps, for long times
  map,          ///< steps of SGD at a learning rate of order one
  first_order,  ///< the map to first order in the learning rate, with adaptive implicit steps
};
template <>
inline constexpr Named<Scheme> kNames<Scheme>[] = {{Scheme::euler, "euler"},
                                                   {Scheme::adaptive, "explicit"},
                                                   {Scheme::implicit, "implicit"},
                                                   {Scheme::map, "map"},
                                                   {Scheme::first_order, "first-order"}};

/// Samples are fixed for a run, or redrawn before each step of euler or map.
enum class Sampling { fixed, redrawn };
template <>
inline constexpr Named<Sampling> kNames<Sampling>[] = {{Sampling::fixed, "fixed"},
                                                       {Sampling::redrawn, "redrawn"}};

/// A time of a result file: its first, its last, or the nearest to a number.
enum class Moment { first, last };
template <>
inline constexpr Named<Moment> kNames<Moment>[] = {{Moment::first, "first"},
                                                   {Moment::last, "last"}};
using FileTime = std::variant<Moment, double>;
std::string to_text(const FileTime& time);

/// The [flow] table of a configuration.
struct FlowOptions {
  FlowInit init = FlowInit::noise;     ///< start
  std::string init_from;               ///< result file to start from; empty: none
  int init_run = 1;                    ///< number of the run in it
  FileTime init_time = Moment::first;  ///< time in it
  std::optional<double> init_noise;    ///< standard deviation of what is added to m and R at the
                                       ///< start; none: 0.01 from noise, 0 around a given point
  /// Blocks of the activation at the start, by name: one number, or all of them. None: the
  /// activation's initial value, or the point's.
  std::map<std::string, Matrix, std::less<>> init_blocks;
  double time = 100.0;              ///< stop at this tau
  double gradient_tolerance = 0.0;  ///< stop when |dy/dtau| is below; 0: never

  Scheme integrator = Scheme::adaptive;
  double step = 0.02;  ///< Euler's step; the learning rate gamma of map and first-order
  double rtol = 1e-6;  ///< relative tolerance of a step (adaptive)
  double atol = 1e-8;  ///< absolute tolerance of a step (adaptive)
  double kappa = 0.0;  ///< learning rate * D / batch size; 0: gradient flow
  Sampling sampling = Sampling::fixed;

  int outputs = 200;                  ///< output times besides tau = 0
  Spacing spacing = Spacing::linear;  ///< of the output times
  double first_output = 0.1;          ///< first output time after 0 when spacing is log
  std::vector<double> times;  ///< if not empty, the output times: ascending, from 0 to `time`

  /// Throws OptionError for the first option that breaks a rule.
  void check() const;
  /// Of those, the rules of the start alone.
  void check_start() const;

  double noise() const { return init_noise.value_or(init == FlowInit::noise ? 0.01 : 0.0); }
};

/// How a flow ended.
enum class FlowOutcome {
  reached_time,  ///< at the requested tau
  stationary,    ///< |dy/dtau| below the tolerance
  diverged,      ///< numbers too large, or the integrator could not go on
  interrupted,   ///< the observer asked to stop
};
template <>
inline constexpr Named<FlowOutcome> kNames<FlowOutcome>[] = {
    {FlowOutcome::reached_time, "reached_time"},
    {FlowOutcome::stationary, "stationary"},
    {FlowOutcome::diverged, "diverged"},
    {FlowOutcome::interrupted, "interrupted"}};

/// What was recorded, at the output times and at the end.
struct Trajectory {
  std::vector<double> time;
  std::vector<Point> point;
  std::vector<double> loss, loss_error;
  std::vector<double> gradient_norm, gradient_error;  ///< norms of the gradient and of its error
};

struct FlowSummary {
  FlowOutcome outcome = FlowOutcome::reached_time;
  std::string message;  ///< one sentence saying why it stopped
  double final_time = 0;
  std::int64_t steps = 0;
  std::int64_t evaluations = 0;
  double seconds = 0;

  std::string brief() const;
};

/// Output times: 0, then `outputs` of them up to `time`.
std::vector<double> output_times(const FlowOptions& options);

/// A point from the paper's initial law: m = N(0, s^2), R = eta I + N(0, s^2), blocks at their
/// initial values. Of
/// each seed there are many, independent of each other and of those of other seeds; a flow takes
/// number 0.
Point initial_point(const Problem& problem, double noise, std::uint64_t seed,
                    std::uint64_t number = 0);

/// The same noise around any point.
Point noisy(Point point, double noise, std::uint64_t seed, std::uint64_t number = 0);

/// The engine for a flow: the tolerance is tightened to a tenth of flow.gradient_tolerance, which
/// otherwise could not be told from the error, and `auto` chooses at the start. With kappa > 0,
/// where `auto` (unless it is told how many samples) or `factorised` can do without samples, only
/// the second moments are sampled: their error is multiplied by kappa.
std::unique_ptr<Engine> make_flow_engine(const Problem& problem, EngineOptions engine,
                                         const FlowOptions& options, const Point& start,
                                         const Context& context = {});

/// Integrates from `start`; appends to `trajectory` as it goes. The observer is told, and asked,
/// after every step and between output times that fall into one. If the engine is stopped from
/// within, what was recorded before is kept; Interrupted is thrown only if there is nothing.
FlowSummary integrate_flow(Engine& engine, const Point& start, const FlowOptions& options,
                           Trajectory& trajectory, const Context& context = {});

}  // namespace headflow
