#pragma once

// What headflow computes, one function each: a Config in, a Dataset out. Front ends read the
// configuration, call one of these, and show or write what it returns. All of them throw
// OptionError for a configuration that breaks a rule, before anything is computed, and Interrupted
// if they are stopped before there is a result; remarks go to the observer. A start from a file
// must have been taken already (io/recorded_start.h).

#include <functional>

#include "core/context.h"
#include "sgd/runs.h"
#include "study/config.h"
#include "study/dataset.h"

namespace headflow {

/// Loss and gradient at [point]: loss, grad_m, grad_R, grad_<block>, each with its errors; with
/// loss.excess also excess_risk.
Dataset compute_loss(const Config& config, const Context& context = {});

/// The Bayes risk: risk, with its error.
Dataset compute_bayes(const Config& config, const Context& context = {});

/// The trajectory of the flow at its output times.
Dataset compute_flow(const Config& config, const Context& context = {});
/// The same of a flow that was integrated already, of any problem; without provenance.
Dataset flow_dataset(const Engine& engine, const Trajectory& run, const FlowSummary& summary);

/// Runs of SGD at their output times. With a store they go on from where an earlier process was.
Dataset compute_sgd(const Config& config, const Context& context = {}, SgdStore* store = nullptr);

/// The same of runs of any problem; without provenance.
Dataset sgd_dataset(const Problem& problem, const SgdOptions& options, const SgdRuns& runs);

/// That, and the limits of [compare] from the same starts. The outcome is "interrupted" if the runs
/// were: there are no limits, then.
Dataset compute_comparison(const Config& config, const Context& context = {},
                           SgdStore* store = nullptr);

/// The first record of each run, as a result of its own.
Dataset start_of_runs(const Config& config, const Sgd& runs);

/// The Hessian where hessian.at says: matrix, spectrum, eigenspaces.
Dataset compute_hessian(const Config& config, const Context& context = {});

/// Where training ends, by [end], [flow] and [run].
Dataset compute_fixed_point(const Config& config, const Context& context = {});

/// The distinct ends of training from minima.starts starts; fewer if stopped.
Dataset compute_minima(const Config& config, const Context& context = {});

}  // namespace headflow
