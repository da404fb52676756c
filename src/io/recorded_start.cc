#include "io/recorded_start.h"

#include "core/error.h"
#include "core/suggest.h"
#include "io/recorded_point.h"

namespace headflow {

RecordedStart take_recorded_start(Config& config) {
  FlowOptions& flow = config.flow;
  if (flow.init_from.empty()) {
    flow.init_noise = flow.noise();
    return {};
  }
  ProblemOptions without_p = config.problem;
  without_p.p.reset();
  const Problem problem(without_p);  // its rules come first: the file must fit a good problem
  const RecordedPoint recorded = read_recorded_point(flow.init_from, problem.activation().blocks(),
                                                     flow.init_run, flow.init_time);
  const auto fits = [&](const char* what, int wanted, Eigen::Index there) {
    if (wanted == there) return;
    throw OptionError("flow.init_from", in_quotes(flow.init_from),
                      fmt::format("has {0} {1}, but problem.{1} = {2}: set problem.{1} = {0}, or "
                                  "take another file",
                                  there, what, wanted));
  };
  fits("heads", problem.H(), recorded.m.rows());
  fits("features", problem.F(), recorded.m.cols());
  RecordedStart out;
  if (!recorded.verified) {
    out.note = fmt::format("{} has no checksum: it cannot be told whether it is as it was written",
                           flow.init_from);
  }
  out.taken_from = flow.init_from;
  if (recorded.time) out.taken_from += fmt::format(" at tau = {:g}", *recorded.time);
  config.point.m = recorded.m;
  config.point.R = recorded.R;
  config.point.blocks = recorded.blocks;
  config.problem.p = recorded.p;
  flow.init = FlowInit::point;
  flow.init_from.clear();
  flow.init_run = 1;
  flow.init_time = Moment::first;
  flow.init_noise = flow.noise();
  return out;
}

}  // namespace headflow
