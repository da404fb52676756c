#include "study/dataset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "study/compute.h"
#include "study/measures.h"
#include "support/problems.h"

namespace headflow::dataset_test {
namespace {

TEST(Dataset, SizesMustFit) {
  Dataset d;
  EXPECT_THROW(d.add("x", "", {{"a", 2}, {"b", 3}}, std::vector<double>(5)), Error);
  EXPECT_THROW(d.add_texts("x", "", {{"a", 2}}, {"one"}), Error);
  EXPECT_THROW(d.add_integers("x", "", {{"a", 2}}, {1, 2, 3}), Error);
  EXPECT_TRUE(d.quantities.empty());
  EXPECT_EQ(d.add("x", "", {{"a", 2}, {"b", 3}}, std::vector<double>(6)).size(), 6u);
}

TEST(Dataset, WhatIsNotThereIsSaid) {
  Dataset d;
  d.add("x", "", {{"a", 2}}, {1, 2});
  d.add("y", "", 3.0).with_errors({0.5}, ErrorKind::assumed);
  d.set("engine", std::string("qmc"));
  EXPECT_EQ(d.number("y"), 3.0);
  EXPECT_EQ(d.error("y"), 0.5);
  EXPECT_TRUE(std::isnan(d.error("x")));
  EXPECT_THROW(d.number("x"), Error);
  EXPECT_THROW(d["z"], Error);
  EXPECT_EQ(d.find("z"), nullptr);
  EXPECT_EQ(d.text("engine"), "qmc");
  EXPECT_TRUE(std::isnan(d.real("engine")));
  EXPECT_EQ(d.count("none"), 0);
  d.set("engine", 2.5);
  EXPECT_EQ(d.attributes.size(), 1u);
  EXPECT_EQ(d.real("engine"), 2.5);
}

TEST(Dataset, LastTakesTheEndOfADimensionWhereverItStands) {
  Dataset d;
  d.add("x", "", {{"run", 2}, {"time", 3}, {"f", 2}}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
      .with_errors({.1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 1.1, 1.2}, ErrorKind::assumed);
  d.add_texts("name", "", {{"time", 3}}, {"a", "b", "c"});
  d.add_integers("step", "", {{"time", 3}}, {0, 5, 10});
  d.add("p", "", {{"run", 2}}, {7, 8});
  const Dataset end = d.last("time");
  EXPECT_EQ(end["x"].dimensions, (Dimensions{{"run", 2}, {"f", 2}}));
  EXPECT_EQ(end["x"].values, (std::vector<double>{5, 6, 11, 12}));
  EXPECT_EQ(end["x"].errors, (std::vector<double>{.5, .6, 1.1, 1.2}));
  EXPECT_EQ(end["name"].texts, (std::vector<std::string>{"c"}));
  EXPECT_EQ(end["step"].integers, (std::vector<std::int64_t>{10}));
  EXPECT_EQ(end["p"].values, d["p"].values);
}

// Every quantity of a result has its numbers, and what is trained is there under its own name.
TEST(Dataset, ComputationsReturnWhatTheyPromise) {
  Config config;
  config.problem.activation = "softmax-1";
  config.problem.prior_parameters["nu"] = testing::row({2.0});
  config.problem.p = Matrix{{1.0, 0.25}, {0.25, 1.0}};
  config.point.m = Matrix{{0.5, 0.25}, {-0.5, 0.125}};
  config.flow.init = FlowInit::point;
  config.flow.time = 1;
  config.flow.outputs = 2;
  config.run.tolerance = 1e-4;
  const Dataset loss = compute_loss(config), flow = compute_flow(config);
  for (const char* name : {"grad_m", "grad_R", "grad_b", "grad_v"}) {
    EXPECT_EQ(loss[name].errors.size(), loss[name].size()) << name;
    EXPECT_EQ(loss[name].error_kinds, std::vector{ErrorKind::refinement}) << name;
  }
  // m as the user writes it, not in the frame.
  for (Eigen::Index i = 0; i < 4; ++i) {
    EXPECT_NEAR(flow["m"].values[static_cast<std::size_t>(i)], config.point.m->data()[i], 1e-15);
  }
  EXPECT_EQ(flow["b"].role, "parameter");
  EXPECT_EQ(flow["b"].dimensions, (Dimensions{{"time", 3}, {"attention_head", 2}}));
  EXPECT_EQ(flow["v"].dimensions, (Dimensions{{"time", 3}}));
  EXPECT_NEAR(flow["loss"].values[0], loss.number("loss"), 2e-4);
  EXPECT_NE(flow.provenance.configuration.find("activation = \"softmax-1\""), std::string::npos);
}

// What a front end forgot is said, not left out.
TEST(Dataset, ComputationsRefuseWhatTheyWouldIgnore) {
  Config config;
  config.problem.prior_parameters["nu"] = testing::row({2.0});
  config.flow.init_from = "run.nc";
  EXPECT_THROW(compute_flow(config), OptionError);
  EXPECT_THROW(compute_hessian(config), OptionError);
  config.flow.init_from.clear();
  EXPECT_THROW(from_name<Measure>("sweep.measure", "endd"), OptionError);
  EXPECT_THROW(measure_task(config, {Measure::bayes, Measure::bayes}, {}), Error);
  config.end.gradient = -1;
  EXPECT_THROW(measure_task(config, {Measure::end}, {}), OptionError);
}

}  // namespace
}  // namespace headflow::dataset_test
