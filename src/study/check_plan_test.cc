#include "study/check_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"

namespace headflow::check_plan_test {
namespace {

std::string complaint(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void expect_complaint(const std::string& part, const std::function<void()>& what) {
  const std::string got = complaint(what);
  EXPECT_NE(got.find(part), std::string::npos) << part << "\nsays: " << got;
}

SweepPlan plan_of(std::vector<SweepAxis> axes, Measures measures = {Measure::bayes}) {
  return {std::move(measures), std::move(axes)};
}

GivenFlags given(const char* name, const Value& value) { return {{find_key(name), value}}; }

TEST(MakeAxis, NamesNumbersAndLabels) {
  const SweepAxis heads = make_axis("problem.heads", {2, 3.0});
  EXPECT_EQ(heads.name, "heads");
  EXPECT_EQ(heads.numbers, (std::vector<double>{2, 3}));
  EXPECT_EQ(heads.integers, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(heads.labels, (std::vector<std::string>{"2", "3"}));
  EXPECT_EQ(make_axis("problem.nu[2]", {0.5}).name, "nu2");
  EXPECT_TRUE(make_axis("problem.nu[2]", {1}).integers.empty());

  const SweepAxis prior =
      make_axis("prior", {"problem.prior", "problem.nu"}, {{"flipping", 10.0}, {"gaussian", 5.0}});
  EXPECT_EQ(prior.name, "prior");
  EXPECT_TRUE(prior.numbers.empty());
  EXPECT_EQ(prior.labels, (std::vector<std::string>{"flipping 10", "gaussian 5"}));
  const SweepPlan plan = plan_of({prior, heads});
  EXPECT_EQ(plan.describe(3), "prior gaussian 5, heads 3");
  EXPECT_EQ(plan.config_of(3, {}).problem.prior, "gaussian");
  EXPECT_EQ(make_axis({}, {"run.seed"}, {{1}, {2}}, {"a", "b"}).labels[1], "b");
}

TEST(MakeAxis, SaysWhatIsWrong) {
  const auto of_key = [](const std::string& key) { return [key] { make_axis(key, {1, 2}); }; };
  expect_complaint("there is no key \"problem.headz\" (did you mean problem.heads?)",
                   of_key("problem.headz"));
  expect_complaint("did you mean run.seed?", of_key("seed"));
  expect_complaint("flow.init or sgd.init", of_key("init"));
  expect_complaint("there is no problem.nu[0]: numbers of a list count from 1, as in problem.nu[1]",
                   of_key("problem.nu[0]"));
  expect_complaint("problem.tokens is no list of numbers", of_key("problem.tokens[1]"));
  expect_complaint("program.threads changes nothing", of_key("program.threads"));
  expect_complaint("the axis of run.seed has no values", [] { make_axis("run.seed", {}); });
  expect_complaint("must have 2, one a key", [] {
    make_axis({}, {"problem.prior", "problem.nu"}, {{"flipping", 1.0}, {"gaussian"}});
  });
  expect_complaint("labels must be 2 texts", [] {
    make_axis({}, {"run.seed"}, {{1}, {2}}, {"one"});
  });
  expect_complaint("an axis needs key", [] { make_axis({}, {}, {{1}}); });
}

TEST(CheckPlan, WhatAxesKeepToTogether) {
  const SweepAxis seed = make_axis("run.seed", {1, 2});
  const auto check = [](const SweepPlan& plan) { return [plan] { check_plan(plan, {}); }; };
  EXPECT_EQ(complaint(check(plan_of({seed}))), "");
  EXPECT_EQ(complaint(check(plan_of({}))), "");
  expect_complaint("measure = [...] is missing", check(plan_of({seed}, {})));
  expect_complaint("named twice", check(plan_of({seed}, {Measure::bayes, Measure::bayes})));
  expect_complaint("two axes are called seed", check(plan_of({seed, seed})));
  expect_complaint("the axes seed and again both set run.seed",
                   check(plan_of({seed, make_axis("again", {"run.seed"}, {{3}})})));
  expect_complaint("what is measured has that name",
                   check(plan_of({make_axis("bayes", {"run.seed"}, {{3}})})));
  expect_complaint("the name of an axis is empty",
                   check(plan_of({make_axis("", {"run.seed"}, {{3}})})));
  std::vector<Value> many(2000, 1);
  expect_complaint("more than 1000000 tasks",
                   check(plan_of({make_axis("run.seed", many), make_axis("problem.heads", many)})));
  SweepAxis by_hand;
  by_hand.name = "seed";
  by_hand.keys = {"run.seed"};
  by_hand.points = {{1}};
  expect_complaint("make_axis makes one", check(plan_of({by_hand})));
}

TEST(CheckPlan, WhatChangesNothingOrIsLost) {
  const SweepPlan heads = plan_of({make_axis("problem.heads", {1, 2})});
  expect_complaint("problem.heads = 7 and the axis \"heads\" both set problem.heads",
                   [&] { check_plan(heads, {}, given("problem.heads", 7)); });
  expect_complaint("sgd.lr = 0.5 changes nothing: none of the measures runs SGD",
                   [&] { check_plan(heads, {}, given("sgd.lr", 0.5)); });
  EXPECT_EQ(complaint([&] { check_plan(heads, {}, given("problem.tokens", 7)); }), "");
  const SweepPlan times = plan_of({make_axis("flow.time", {1.0, 2.0})}, {Measure::end});
  expect_complaint("the axis of flow.time changes nothing", [&] { check_plan(times, {}); });
  Config by_flow;
  by_flow.end.search = EndSearch::flow;
  EXPECT_EQ(complaint([&] { check_plan(times, by_flow); }), "");
}

TEST(SweepPlan, KnowsWhetherItSetsAPoint) {
  SweepPlan plan = plan_of({make_axis("problem.heads", {1, 2})});
  EXPECT_FALSE(plan.sets_point());
  plan.point_is_given = true;
  EXPECT_TRUE(plan.sets_point());
  EXPECT_TRUE(plan_of({make_axis("point.m", {Matrix{{1.0, 0.0}}})}).sets_point());
}

}  // namespace
}  // namespace headflow::check_plan_test
