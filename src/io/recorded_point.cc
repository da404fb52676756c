#include "io/recorded_point.h"

#include <Eigen/Cholesky>

#include "core/error.h"
#include "core/suggest.h"
#include "io/result_file.h"

namespace headflow {
namespace {

/// A negative eigenvalue of R R^T up to this, relative to q, is rounding.
constexpr double kRounding = 1e-8;

/// Variables at the first time, of one run if the file holds several.
class FirstTime {
 public:
  FirstTime(const NetcdfReader& file, std::string path, bool many, int run)
      : file_(file),
        path_(std::move(path)),
        heads_(static_cast<Eigen::Index>(file.size("attention_head"))),
        features_(static_cast<Eigen::Index>(file.size("feature"))) {
    if (file.size("time") == 0) throw FileError(path_, "holds no times");
    if (!many) return;
    const std::size_t runs = file.size("run");
    if (run < 1 || static_cast<std::size_t>(run) > runs) {
      throw OptionError("flow.init_run", fmt::format("{}", run),
                        fmt::format("must be from 1 to {}, the runs of {}", runs, path_));
    }
    leading_ = {"run"};
    at_ = {static_cast<std::size_t>(run - 1)};
  }

  Eigen::Index heads() const { return heads_; }
  Eigen::Index features() const { return features_; }

  /// Dimensions beyond run and time.
  Matrix read(const std::string& name, std::vector<std::string> dimensions, Eigen::Index rows,
              Eigen::Index columns, bool with_time = true) const {
    std::vector<std::string> all = leading_;
    std::vector<std::size_t> at = at_;
    if (with_time) all.emplace_back("time"), at.push_back(0);
    all.insert(all.end(), dimensions.begin(), dimensions.end());
    const std::vector<double> values = file_.values(name, all, at);
    if (static_cast<Eigen::Index>(values.size()) != rows * columns) {
      throw FileError(path_, fmt::format("variable {} must be {} x {}", name, rows, columns));
    }
    Matrix out = Eigen::Map<const Matrix>(values.data(), rows, columns);
    if (!out.allFinite()) {
      throw FileError(path_, fmt::format("variable {} is not finite at the first time", name));
    }
    return out;
  }

 private:
  const NetcdfReader& file_;
  std::string path_;
  Eigen::Index heads_, features_;
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

RecordedPoint read_recorded_point(const std::string& path, int run) {
  const NetcdfReader file(path);
  const std::string format = file.text("format");
  if (format != "headflow-flow" && format != "headflow-sgd") {
    throw FileError(path, fmt::format("is no result of headflow: its attribute format is {}, not "
                                      "\"headflow-flow\" or \"headflow-sgd\"",
                                      in_quotes(format)));
  }
  if (file.number("format_version") > kResultFormatVersion) {
    throw FileError(path, fmt::format("has format version {:g}, newer than this program's, {}",
                                      file.number("format_version"), kResultFormatVersion));
  }
  const bool sgd = format == "headflow-sgd";
  if (!sgd && run != 1) {
    throw OptionError("flow.init_run", fmt::format("{}", run),
                      fmt::format("must be 1: {} holds one run", path));
  }
  const FirstTime start(file, path, sgd, run);
  const Eigen::Index H = start.heads(), F = start.features();

  RecordedPoint out;
  out.user.m = start.read("m", {"attention_head", "feature"}, H, F);
  out.user.b = start.read("b", {"attention_head"}, 1, H).row(0);
  out.user.v = start.read("v", {}, 1, 1)(0, 0);
  out.p = Matrix::Identity(F, F);  // files from before p was recorded
  if (sgd || file.has("p")) out.p = start.read("p", {"feature", "feature2"}, F, F, false);
  out.user.R = sgd ? orthogonal_part(path, start.read("q", {"attention_head", "other_head"}, H, H),
                                     out.user.m, out.p)
                   : start.read("R", {"attention_head", "other_head"}, H, H);
  return out;
}

}  // namespace headflow
