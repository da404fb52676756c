#include "io/recorded_point.h"

#include <gtest/gtest.h>
#include <netcdf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Eigen/LU>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "io/netcdf_file.h"
#include "io/recorded_start.h"
#include "io/result_file.h"
#include "io/toml_config.h"
#include "study/compute.h"
#include "study/config.h"
#include "study/keys.h"
#include "study/result_header.h"
#include "support/problems.h"

namespace headflow::recorded_point_test {
namespace {

using testing::flatten;

/// Those that the files have.
std::vector<BlockInfo> blocks() { return find_activation("softmax-1")->blocks(); }

constexpr int kRuns = 3, kTimes = 2, H = 2, F = 3, kDimension = 9;

/// Vectors of one run at one time, and their overlaps.
struct State {
  Matrix m, q, p;
  Vector b;
  double v;

  explicit State(unsigned seed) {
    const Matrix spikes = testing::random_matrix(F, kDimension, 10 * (seed % 100) + 1),
                 heads = testing::random_matrix(H, kDimension, 10 * seed + 2);
    m = heads * spikes.transpose();
    q = heads * heads.transpose();
    p = spikes * spikes.transpose();
    b = testing::random_matrix(H, 1, 10 * seed + 3);
    v = 1.0 + 0.1 * seed;
  }
};

class RecordedPointTest : public ::testing::Test {
 protected:
  std::string path = ::testing::TempDir() + "headflow_recorded_" + std::to_string(::getpid());

  void TearDown() override { std::filesystem::remove(path); }

  /// A file of SGD runs: run r starts at State(r + 1); later times hold other numbers.
  void write_sgd(double smaller_q = 0.0, std::int64_t version = 2,
                 const std::string& format = "headflow-sgd") const {
    NetcdfWriter file;
    const std::string head = version == 1 ? "head" : "attention_head",
                      other = version == 1 ? "head2" : "other_head";
    const std::vector<std::pair<std::string, std::size_t>> sizes = {
        {"run", kRuns}, {"time", kTimes}, {head, H}, {other, H}, {"feature", F}, {"feature2", F}};
    for (const auto& [name, size] : sizes) file.dimension(name, size);
    std::vector<double> m, q, p, b, v;
    const auto append = [](std::vector<double>& out, const Matrix& x) {
      out.insert(out.end(), x.data(), x.data() + x.size());
    };
    for (unsigned run = 0; run < kRuns; ++run) {
      for (unsigned time = 0; time < kTimes; ++time) {
        const State state(run + 1 + 100 * time);
        append(m, state.m);
        append(q, state.q - smaller_q * Matrix::Identity(H, H));
        append(b, state.b.transpose());
        v.push_back(state.v);
      }
      append(p, State(run + 1).p);
    }
    file.variable("m", {"run", "time", head, "feature"}, m, {});
    file.variable("q", {"run", "time", head, other}, q, {});
    file.variable("p", {"run", "feature", "feature2"}, p, {});
    file.variable("b", {"run", "time", head}, b, {});
    file.variable("v", {"run", "time"}, v, {});
    file.variable("time", {"time"}, std::vector<double>{0.0, 2.5}, {});
    file.attribute("format", format);
    file.attribute("format_version", version);
    file.write(path);
  }

  std::string complaint(int run = 1) const {
    try {
      read_recorded_point(path, blocks(), run);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }
  void expect_complaint(const std::string& words, int run = 1) const {
    EXPECT_NE(complaint(run).find(words), std::string::npos) << complaint(run);
  }
};

TEST_F(RecordedPointTest, TakesARunOfSgdAtItsFirstTime) {
  write_sgd();
  for (int run = 1; run <= kRuns; ++run) {
    const State state(static_cast<unsigned>(run));
    const RecordedPoint got = read_recorded_point(path, blocks(), run);
    EXPECT_EQ(got.m, state.m);
    EXPECT_EQ(got.blocks.at("b"), Matrix(state.b.transpose()));
    EXPECT_EQ(got.blocks.at("v"), Matrix::Constant(1, 1, state.v));
    EXPECT_EQ(got.p, state.p);
    const Matrix rest = state.q - state.m * state.p.inverse() * state.m.transpose();
    EXPECT_TRUE((got.R * got.R.transpose()).isApprox(rest, 1e-10));
    // In the frame of the problem the heads have their overlaps.
    ProblemOptions options = testing::problem_options("softmax", "gaussian", 4, H, F);
    options.p = got.p;
    EXPECT_TRUE(read_recorded_point(path, {}, run).blocks.empty()) << "none are asked for";
    EXPECT_TRUE(Problem(options).frame().enter({got.m, got.R, {}}).q().isApprox(state.q, 1e-10));
  }
}

TEST_F(RecordedPointTest, ReadsFilesFromBeforeTheDimensionsWereRenamed) {
  write_sgd(0.0, 1);
  const RecordedPoint got = read_recorded_point(path, blocks(), 2);
  EXPECT_EQ(got.m, State(2).m);
  EXPECT_EQ(got.blocks.at("b"), Matrix(State(2).b.transpose()));
}

TEST_F(RecordedPointTest, TakesTheStartOfAFlow) {
  ProblemOptions options = testing::problem_options("softmax-1", "gaussian", 4, H, F);
  options.p = State(1).p;
  const Problem problem(options);
  const auto engine = make_engine(problem, testing::engine_options(100, 1));
  const Point start = testing::random_point(problem, 3);  // in the frame
  Trajectory trajectory;
  FlowOptions flow;
  flow.time = 1;
  const FlowSummary summary = integrate_flow(*engine, start, flow, trajectory);
  write_result(path, flow_dataset(*engine, trajectory, summary));
  const RecordedPoint got = read_recorded_point(path, blocks(), 1);
  EXPECT_EQ(got.p, State(1).p);
  EXPECT_EQ(got.R, start.R);  // R itself: no root is needed
  Point user = problem.zero_point();
  user.m = got.m, user.R = got.R;
  for (const auto& [name, row] : got.blocks) user[name] = row.transpose();
  EXPECT_TRUE(flatten(problem.frame().enter(user)).isApprox(flatten(start), 1e-13));
  expect_complaint("flow.init_run = 2: must be 1", 2);
}

TEST_F(RecordedPointTest, AConfigTakesItAsItsPoint) {
  write_sgd();
  Config config;
  config.problem = testing::problem_options("softmax-1", "gaussian", 4, H, F);
  config.flow.init_from = path;
  config.flow.init_run = 2;
  take_recorded_start(config);
  EXPECT_EQ(config.flow.init, FlowInit::point);
  EXPECT_EQ(config.flow.init_from, "");
  EXPECT_EQ(*config.point.m, State(2).m);
  EXPECT_EQ(*config.problem.p, State(2).p);
  const Problem problem(config.problem);
  const Point start = flow_start(config, problem);
  EXPECT_TRUE(start.q().isApprox(State(2).q, 1e-10));
  EXPECT_EQ(start["b"], State(2).b);
  EXPECT_EQ(start["v"][0], State(2).v);
  // The configuration needs no file.
  const std::string configuration = config_text(config, {"problem", "run", "point", "flow"});
  EXPECT_EQ(configuration.find(path), std::string::npos);
  std::ofstream(path) << configuration;
  Config again;
  Origins origins;
  read_config(path, {}, again, origins);
  EXPECT_EQ(flatten(flow_start(again, Problem(again.problem))), flatten(start));

  write_sgd();
  config.flow.init_from = path;
  config.problem.heads = 4;
  try {
    take_recorded_start(config);
    ADD_FAILURE() << "accepted";
  } catch (const OptionError& e) {
    EXPECT_EQ(e.key(), "flow.init_from");
    EXPECT_EQ(e.rule(),
              "has 2 heads, but problem.heads = 4: set problem.heads = 2, or take another file");
  }
}

TEST_F(RecordedPointTest, AtAnyTime) {
  for (const char* format : {"headflow-sgd", "headflow-comparison"}) {
    write_sgd(0.0, 2, format);
    EXPECT_EQ(read_recorded_point(path, blocks(), 2).time, 0.0);
    for (const FileTime& late : std::vector<FileTime>{Moment::last, 2.5, 1.3, 2.5000000001}) {
      const RecordedPoint got = read_recorded_point(path, blocks(), 2, late);
      EXPECT_EQ(got.time, 2.5) << to_text(late);
      EXPECT_EQ(got.m, State(102).m) << to_text(late);
    }
    for (const FileTime& early : std::vector<FileTime>{Moment::first, 0.0, 1.2}) {
      EXPECT_EQ(read_recorded_point(path, blocks(), 2, early).m, State(2).m) << to_text(early);
    }
    for (const double bad : {2.6, -1.0, std::nan("")}) {
      EXPECT_THROW(read_recorded_point(path, blocks(), 2, bad), OptionError) << bad;
    }
    Config config;
    const Key& key = *find_key("flow.init_time");
    for (const char* good : {"last", "2.5", " 2.5"}) key.set(config, std::string(good));
    EXPECT_EQ(config.flow.init_time, FileTime(2.5));
    for (const char* bad : {"end", "", "nan", "1 2"}) {
      EXPECT_THROW(key.set(config, std::string(bad)), OptionError) << bad;
    }
  }
}

// What fixed-point and minima found is a start, too: no times, one minimum of several.
TEST_F(RecordedPointTest, TakesAnEndOfTraining) {
  Config config;
  config.problem = testing::problem_options("softmax-1", "gaussian", 4, H, F);
  config.problem.p = State(1).p;
  config.run.tolerance = 1e-3;
  config.minima.starts = 2;
  for (const bool many : {false, true}) {
    const Dataset found = many ? compute_minima(config) : compute_fixed_point(config);
    write_result(path, found);
    Config from;
    from.problem = config.problem;
    from.problem.p.reset();
    from.flow.init_from = path;
    EXPECT_EQ(take_recorded_start(from).taken_from, path);
    const Point start = flow_start(from, Problem(from.problem));
    const auto first = [&](const char* name) { return found[name].values[0]; };
    EXPECT_EQ(*from.problem.p, State(1).p);
    EXPECT_EQ((*from.point.m)(0, 0), first("m"));
    EXPECT_EQ(start.R(0, 0), first("R"));
    EXPECT_EQ(start["b"][0], first("b"));
    const auto engine = make_engine(Problem(from.problem), from.run, {&start, false});
    Evaluation e;
    engine->evaluate(start, {}, e);
    EXPECT_NEAR(e.loss, first("loss"), e.loss_error + found["loss"].errors[0]);
    expect_complaint("flow.init_run = 9", 9);
    EXPECT_THROW(read_recorded_point(path, blocks(), 1, 2.5), OptionError);
    EXPECT_NO_THROW(read_recorded_point(path, blocks(), 1, Moment::last));
  }
}

// A block of another activation may stand in a configuration; one that no activation has may not.
TEST_F(RecordedPointTest, BlocksThatNoActivationHas) {
  Config config;
  config.problem = testing::problem_options("softmax", "gaussian", 4, H, F);
  const Problem problem(config.problem);
  config.flow.init = FlowInit::point;
  config.point.blocks["b"] = config.flow.init_blocks["b"] = Matrix::Zero(1, 2);
  EXPECT_NO_THROW(flow_start(config, problem));
  config.point.blocks["bb"] = Matrix::Zero(1, 2);
  EXPECT_THROW(flow_start(config, problem), OptionError);
  config.point.blocks.erase("bb");
  config.flow.init_blocks["bb"] = Matrix::Zero(1, 2);
  EXPECT_THROW(flow_start(config, problem), OptionError);
}

// Noise, b and v at the start, from noise and around a point; as recorded, it is the same again.
TEST_F(RecordedPointTest, StartsAroundAPoint) {
  Config config;
  config.problem = testing::problem_options("softmax-1", "gaussian", 4, H, F);
  const Problem problem(config.problem);
  EXPECT_EQ(flatten(flow_start(config, problem)), flatten(initial_point(problem, 0.01, 1)));
  config.flow.init = FlowInit::point;
  config.point.m = Matrix::Ones(H, F);
  const Point point = flow_start(config, problem);
  EXPECT_EQ(point.m, Matrix::Ones(H, F)) << "no noise around a point unless it is asked for";
  config.flow.init_noise = 0.1;
  config.flow.init_blocks = {{"b", Matrix::Constant(1, 1, 0.5)},
                             {"v", Matrix::Constant(1, 1, 2.0)}};
  const Point start = flow_start(config, problem);
  const Point noise = initial_point(problem, 0.1, 1);
  EXPECT_TRUE((start.m - point.m).isApprox(noise.m, 1e-12));
  EXPECT_TRUE((start.R - point.R).isApprox(noise.R - point.R, 1e-12));
  EXPECT_EQ(start["b"], Vector::Constant(H, 0.5));
  EXPECT_EQ(start["v"][0], 2.0);
  take_recorded_start(config);
  std::ofstream(path) << config_text(config, {"problem", "run", "point", "flow"});
  Config again;
  Origins origins;
  read_config(path, {}, again, origins);
  EXPECT_EQ(flatten(flow_start(again, Problem(again.problem))), flatten(start));
  config.flow.init_blocks["b"] = Matrix::Constant(1, 3, 0.5);
  EXPECT_THROW(flow_start(config, problem), OptionError);
}

// Sizes that a file claims are not believed: nothing is allocated for them.
TEST_F(RecordedPointTest, HugeDimensions) {
  const std::vector<std::string> names = {"run",        "time",    "attention_head",
                                          "other_head", "feature", "feature2"};
  const std::vector<std::pair<std::string, std::vector<int>>> variables = {
      {"time", {1}}, {"m", {0, 1, 2, 4}}, {"b", {0, 1, 2}}};
  for (const std::string& huge : names) {
    int file = 0, dimension = 0, variable = 0;
    ASSERT_EQ(nc_create(path.c_str(), NC_NETCDF4, &file), NC_NOERR);
    for (const std::string& name : names) {
      const std::size_t size = name == huge ? std::size_t{1} << 40 : 2;
      ASSERT_EQ(nc_def_dim(file, name.c_str(), size, &dimension), NC_NOERR);
    }
    for (const auto& [name, dimensions] : variables) {
      const std::vector<std::size_t> chunks(dimensions.size(), 2);  // none of them is written
      ASSERT_EQ(nc_def_var(file, name.c_str(), NC_DOUBLE, static_cast<int>(dimensions.size()),
                           dimensions.data(), &variable),
                NC_NOERR);
      ASSERT_EQ(nc_def_var_chunking(file, variable, NC_CHUNKED, chunks.data()), NC_NOERR);
    }
    ASSERT_EQ(nc_put_att_text(file, NC_GLOBAL, "format", 12, "headflow-sgd"), NC_NOERR);
    ASSERT_EQ(nc_close(file), NC_NOERR);
    EXPECT_NE(complaint(), "accepted") << huge;
  }
}

TEST_F(RecordedPointTest, OnlyRegularFilesAreOpened) {
  const auto refused = [](const std::string& name) {
    EXPECT_THROW(read_recorded_point(name, blocks(), 1), FileError) << name;
    EXPECT_EQ(read_attribute(name, "format"), "");
  };
  for (const char* name : {"http://127.0.0.1:9/run.nc", "https://127.0.0.1:9/run.nc#mode=bytes",
                           "file:///etc/passwd", "/dev/zero", "/", "[log]http://127.0.0.1:9/x"}) {
    refused(name);
  }
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // opening it would wait for a writer
  refused(path);
}

TEST_F(RecordedPointTest, SaysWhatIsWrong) {
  expect_complaint(path + ": cannot be read: No such file");
  std::ofstream(path) << "no netCDF at all";
  expect_complaint(path + ": is not a netCDF file");
  write_sgd();
  expect_complaint("flow.init_run = 4: must be from 1 to 3", 4);
  expect_complaint("flow.init_run = 0: must be from 1 to 3", 0);
  write_sgd(50.0);
  expect_complaint("do not belong together");
  constexpr int kNewer = kResultFormatVersion + 1;
  write_sgd(0.0, kNewer);
  expect_complaint(fmt::format("has format version {}, newer than this program's", kNewer));

  NetcdfWriter other;
  other.dimension("attention_head", H);
  other.attribute("format", std::string("something"));
  other.write(path);
  expect_complaint("its attribute format is \"something\"");
  NetcdfWriter empty;
  empty.dimension("attention_head", H);
  empty.attribute("format", std::string("headflow-flow"));
  empty.write(path);
  expect_complaint("has no dimension feature");
}

}  // namespace
}  // namespace headflow::recorded_point_test
