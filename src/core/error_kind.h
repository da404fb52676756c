#pragma once

#include "core/names.h"

namespace headflow {

/// What the error of a number is. Statistical errors are one standard deviation.
enum class ErrorKind {
  standard_error,  ///< of an engine's estimate, over its independent samples
  randomisations,  ///< of an engine's estimate, over randomisations of one set of points
  refinement,      ///< a bound from the difference to a finer rule
  replicas,        ///< standard error over independent repetitions
  runs,            ///< the same, over runs of SGD
  starts,          ///< the same, over starts of training
  fresh_samples,   ///< the same, over samples that training has not seen
  slope,           ///< of a fitted slope, from the scatter about the line
  binomial,        ///< of a share
  gradient,        ///< of a place where the gradient nearly vanishes: it over the curvature
  other_samples,   ///< difference to what other samples give
  outputs,         ///< difference to what half of the output times give
  extrapolation,   ///< difference between the last two extrapolations
  next_order,      ///< the next order of an extrapolation, from the last one
  count,           ///< none: a count
  assumed,         ///< not measured: rounding, or a tolerance that was asked for
};
template <>
inline constexpr Named<ErrorKind> kNames<ErrorKind>[] = {
    {ErrorKind::standard_error, "Monte-Carlo standard error"},
    {ErrorKind::randomisations, "standard error over randomisations"},
    {ErrorKind::refinement, "refinement difference"},
    {ErrorKind::replicas, "standard error"},
    {ErrorKind::runs, "standard error over runs"},
    {ErrorKind::starts, "standard error over starts"},
    {ErrorKind::fresh_samples, "standard error over fresh samples"},
    {ErrorKind::slope, "standard error of the slope"},
    {ErrorKind::binomial, "binomial standard error"},
    {ErrorKind::gradient, "gradient over curvature"},
    {ErrorKind::other_samples, "difference to other samples"},
    {ErrorKind::outputs, "difference to half of the outputs"},
    {ErrorKind::extrapolation, "extrapolation of differences"},
    {ErrorKind::next_order, "a quarter of the extrapolation: its next order"},
    {ErrorKind::count, "none: a count"},
    {ErrorKind::assumed, "assumed"}};

}  // namespace headflow
