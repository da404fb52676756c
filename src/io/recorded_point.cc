#include "io/recorded_point.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/suggest.h"
#include "io/netcdf_file.h"
#include "model/problem.h"
#include "study/result_header.h"

namespace headflow {
namespace {

/// A negative eigenvalue of R R^T up to this, relative to q, is rounding.
constexpr double kRounding = 1e-8;

/// Number of the recorded time that is meant.
std::size_t find_time(const NetcdfReader& file, const std::string& path, const FileTime& wanted,
                      double& found) {
  const bool first = wanted == FileTime(Moment::first);
  const std::size_t count = file.size("time");
  if (count == 0) throw FileError(path, "holds no times");
  if (first && !file.has("time")) return 0;
  const std::vector<double> times = file.values("time", {"time"});
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i]) || (i > 0 && !(times[i] > times[i - 1]))) {
      throw FileError(path, "its times are not ascending numbers");
    }
  }
  if (std::holds_alternative<Moment>(wanted)) {
    found = first ? times.front() : times.back();
    return first ? 0 : count - 1;
  }
  const double time = std::get<double>(wanted), slack = 1e-9 * std::abs(times.back());
  if (!(time >= times.front() - slack && time <= times.back() + slack)) {
    throw OptionError("flow.init_time", in_quotes(to_text(wanted)),
                      fmt::format("must be \"first\", \"last\" or from {} to {}, the times of {}",
                                  times.front(), times.back(), path));
  }
  const auto nearest = std::min_element(times.begin(), times.end(), [&](double a, double b) {
    return std::abs(a - time) < std::abs(b - time);
  });
  found = *nearest;
  return static_cast<std::size_t>(nearest - times.begin());
}

/// What a file holds: one point, or points along dimensions.
struct Kind {
  const char* format;
  const char* many;  ///< the dimension that flow.init_run counts along; null: none
  bool timed;
  bool squares;  ///< q, and not R
};
constexpr Kind kKinds[] = {{"headflow-flow", nullptr, true, false},
                           {"headflow-sgd", "run", true, true},
                           {"headflow-comparison", "run", true, true},
                           {"headflow-fixed-point", nullptr, false, false},
                           {"headflow-minima", "minimum", false, false}};

const Kind& kind_of(const std::string& path, const std::string& format) {
  std::vector<std::string> known;
  for (const Kind& one : kKinds) {
    if (one.format == format) return one;
    known.push_back(in_quotes(one.format));
  }
  throw FileError(path, fmt::format("holds no point to start from: its attribute format is {}, "
                                    "not one of {}",
                                    in_quotes(format), fmt::join(known, ", ")));
}

/// Variables at one time, of one run or minimum if the file holds several.
class AtTime {
 public:
  AtTime(const NetcdfReader& file, std::string path, const Kind& kind, int run,
         const FileTime& time)
      : file_(file),
        path_(std::move(path)),
        timed_(kind.timed),
        heads_(static_cast<Eigen::Index>(file.size("attention_head"))),
        features_(static_cast<Eigen::Index>(file.size("feature"))) {
    if (heads_ < 1 || heads_ > kMostHeads || features_ < 1 || features_ > kMostFeatures) {
      throw FileError(path_, fmt::format("has {} heads and {} features, which no problem has",
                                         heads_, features_));
    }
    if (timed_) time_ = find_time(file, path_, time, found_);
    if (!timed_ && !std::holds_alternative<Moment>(time)) {
      throw OptionError("flow.init_time", in_quotes(to_text(time)),
                        fmt::format("is not for {}, which holds where training ended", path_));
    }
    if (!kind.many) {
      if (run == 1) return;
      throw OptionError("flow.init_run", fmt::format("{}", run),
                        fmt::format("must be 1: {} holds one run", path_));
    }
    const std::size_t runs = file.size(kind.many);
    if (run < 1 || static_cast<std::size_t>(run) > runs) {
      throw OptionError("flow.init_run", fmt::format("{}", run),
                        fmt::format("must be from 1 to {}, along the dimension {} of {}", runs,
                                    kind.many, path_));
    }
    leading_ = {kind.many};
    at_ = {static_cast<std::size_t>(run - 1)};
  }

  Eigen::Index heads() const { return heads_; }
  Eigen::Index features() const { return features_; }
  /// The recorded time; none of an end of training.
  std::optional<double> time() const {
    return timed_ ? std::optional<double>(found_) : std::nullopt;
  }

  /// Dimensions beyond run and time.
  Matrix read(const std::string& name, std::vector<std::string> dimensions, Eigen::Index rows,
              Eigen::Index columns, bool with_time = true, bool with_run = true) const {
    std::vector<std::string> all;
    std::vector<std::size_t> at;
    if (with_run) all = leading_, at = at_;
    if (with_time && timed_) all.emplace_back("time"), at.push_back(time_);
    all.insert(all.end(), dimensions.begin(), dimensions.end());
    const std::vector<double> values = file_.values(name, all, at);
    if (static_cast<Eigen::Index>(values.size()) != rows * columns) {
      throw FileError(path_, fmt::format("variable {} must be {} x {}", name, rows, columns));
    }
    Matrix out = Eigen::Map<const Matrix>(values.data(), rows, columns);
    if (!out.allFinite()) {
      throw FileError(path_, fmt::format("variable {} is not finite at that time", name));
    }
    return out;
  }

 private:
  const NetcdfReader& file_;
  std::string path_;
  bool timed_;
  Eigen::Index heads_, features_;
  std::size_t time_ = 0;
  double found_ = 0;  ///< the time itself
  std::vector<std::string> leading_;
  std::vector<std::size_t> at_;
};

/// The positive root of q - m p^-1 m^T, the overlaps of the heads' orthogonal parts.
Matrix orthogonal_part(const std::string& path, const Matrix& q, const Matrix& m, const Matrix& p) {
  const Eigen::LLT<Matrix> factor(p);
  if (factor.info() != Eigen::Success) throw FileError(path, "p is not positive definite");
  const Matrix rest = q - m * factor.solve(m.transpose());
  const double smallest = smallest_eigenvalue(rest);
  if (smallest < -kRounding * q.cwiseAbs().maxCoeff()) {
    throw FileError(path, fmt::format("q - m p^-1 m^T has a negative eigenvalue, {:.3g}: q, m and "
                                      "p do not belong together",
                                      smallest));
  }
  return positive_square_root(rest);
}

}  // namespace

RecordedPoint read_recorded_point(const std::string& path, const std::vector<BlockInfo>& blocks,
                                  int run, const FileTime& time) {
  const NetcdfReader file(path);
  const Kind& kind = kind_of(path, file.text("format"));
  if (file.number("format_version") > kResultFormatVersion) {
    throw FileError(path, fmt::format("has format version {:g}, newer than this program's, {}",
                                      file.number("format_version"), kResultFormatVersion));
  }
  const bool verified = file.verify();
  const AtTime start(file, path, kind, run, time);
  const Eigen::Index H = start.heads(), F = start.features();

  RecordedPoint out;
  out.verified = verified;
  out.time = start.time();
  out.m = start.read("m", {"attention_head", "feature"}, H, F);
  const bool of_tokens = std::ranges::any_of(
      blocks, [](const BlockInfo& b) { return std::ranges::count(b.axes, Axis::token) > 0; });
  const int L = of_tokens ? static_cast<int>(file.size("token")) : 1;
  const Sizes sizes{L, static_cast<int>(H), static_cast<int>(F)};
  const BlockLayout layout(blocks, sizes);
  for (const BlockLayout::Entry& e : layout.entries()) {
    if (!file.has(e.info.name)) continue;  // another activation, which has none
    out.blocks[e.info.name] = start.read(e.info.name, e.info.dimensions(), 1, e.size);
  }
  out.p = Matrix::Identity(F, F);  // files from before p was recorded
  if (kind.squares || file.has("p")) {
    out.p = start.read("p", {"feature", "feature2"}, F, F, false, kind.squares);
  }
  out.R = kind.squares
              ? orthogonal_part(path, start.read("q", {"attention_head", "other_head"}, H, H),
                                out.m, out.p)
              : start.read("R", {"attention_head", "other_head"}, H, H);
  return out;
}

}  // namespace headflow
