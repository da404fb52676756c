#include "study/variables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace headflow::variables_test {
namespace {

using Texts = std::vector<std::string>;
using Attributes = std::vector<std::pair<std::string, std::string>>;

Dataset example() {
  Dataset d{"headflow-test", "a test", {}, {}, {"a = 1\n", "headflow test", ~std::uint64_t{0}}};
  d.add("time", "training time", {{"time", 2}}, {0, 0.5}).units = "steps";
  d.add("m", "overlaps", {{"time", 2}, {"feature", 1}}, {1, std::nan("")})
      .with_errors({.1, .2}, ErrorKind::replicas);
  d.add("b", "biases", {{"attention_head", 1}}, {0.5}).role = "parameter";
  d.add("index", "index", {{"time", 2}}, {3, std::nan("")}).whole_numbers();
  d.add("runs", "all known", {{"time", 2}}, {3, 4}).whole_numbers();
  d.add_texts("kind", "a text", {{"time", 2}}, {"minimum", ""});
  d.add_integers("seed_used", "exact", {{"time", 2}}, {9007199254740993, 2});
  d.add("norm", "norm", 2.5).error_name = "off";
  d.quantities.back().errors = {0.25};
  d.add("nothing", "no entries", {{"none", 0}}, {});
  d.set("converged", true);
  d.set("steps", std::int64_t{12});
  d.set("seconds", 0.5);
  d.set("engine", std::string("qmc"));
  return d;
}

const Variable& find(const NamedVariables& all, const std::string& name) {
  const auto it = std::ranges::find(all.variables, name, &Variable::name);
  if (it == all.variables.end()) throw Error(name);
  return *it;
}

template <class Values>
Values values_of(const NamedVariables& all, const std::string& name) {
  return std::get<Values>(find(all, name).values);
}
using Reals = std::vector<double>;
using Integers = std::vector<std::int64_t>;

TEST(Variables, AreQuantitiesTheirErrorsAndWhatCounts) {
  const NamedVariables all = variables_of(example());
  Texts names;
  for (const Variable& one : all.variables) names.push_back(one.name);
  // Counted dimensions first; time has its own coordinate, and what has no entries is left out.
  EXPECT_EQ(names, (Texts{"feature", "attention_head", "time", "m", "m_error", "b", "index", "runs",
                          "kind", "seed_used", "norm", "off"}));
  EXPECT_EQ(all.dimensions, (Dimensions{{"time", 2}, {"feature", 1}, {"attention_head", 1}}));
  EXPECT_EQ(values_of<Integers>(all, "feature"), (Integers{1}));
  EXPECT_EQ(find(all, "feature").attributes, (Attributes{{"long_name", "hidden direction"}}));
  EXPECT_EQ(
      find(all, "m").attributes,
      (Attributes{{"long_name", "overlaps"}, {"units", "1"}, {"ancillary_variables", "m_error"}}));
  EXPECT_EQ(find(all, "m").dimensions, (Dimensions{{"time", 2}, {"feature", 1}}));
  EXPECT_EQ(values_of<Reals>(all, "m")[0], 1);
  EXPECT_EQ(values_of<Reals>(all, "m_error"), (Reals{.1, .2}));
  EXPECT_EQ(
      find(all, "m_error").attributes,
      (Attributes{{"long_name", "error of m"}, {"units", "1"}, {"error_kind", "standard error"}}));
  EXPECT_EQ(find(all, "b").attributes,
            (Attributes{{"long_name", "biases"}, {"units", "1"}, {"role", "parameter"}}));
  EXPECT_EQ(values_of<Reals>(all, "off"), (Reals{0.25}));
  EXPECT_TRUE(find(all, "norm").dimensions.empty());
}

TEST(Variables, KeepTheirTypes) {
  const NamedVariables all = variables_of(example());
  EXPECT_EQ(values_of<Integers>(all, "index"), (Integers{3, kUnknownInteger}));
  EXPECT_EQ(find(all, "index").unknown, kUnknownInteger);
  EXPECT_EQ(values_of<Integers>(all, "runs"), (Integers{3, 4}));
  EXPECT_FALSE(find(all, "runs").unknown);
  EXPECT_EQ(values_of<Texts>(all, "kind"), (Texts{"minimum", ""}));
  EXPECT_EQ(find(all, "kind").attributes, (Attributes{{"long_name", "a text"}}));  // no units
  EXPECT_EQ(values_of<Integers>(all, "seed_used"), (Integers{9007199254740993, 2}));
}

TEST(Variables, HaveProvenanceAndAttributes) {
  const NamedVariables all = variables_of(example());
  const auto attribute = [&](const std::string& name) {
    using Pair = std::pair<std::string, GlobalAttribute>;
    return std::ranges::find(all.attributes, name, &Pair::first)->second;
  };
  Texts names;
  for (const auto& [name, value] : all.attributes) names.push_back(name);
  EXPECT_EQ(names, (Texts{"title", "format", "format_version", "program_version", "program_commit",
                          "date", "configuration", "configuration_hash", "command", "seed",
                          "converged", "steps", "seconds", "engine", "checksum"}));
  EXPECT_EQ(attribute("seed"), GlobalAttribute(~std::uint64_t{0}));
  EXPECT_EQ(attribute("converged"), GlobalAttribute(std::int64_t{1}));
  EXPECT_EQ(attribute("seconds"), GlobalAttribute(0.5));
  EXPECT_EQ(attribute("configuration"), GlobalAttribute(std::string("a = 1\n")));
  EXPECT_EQ(attribute("configuration_hash"),
            GlobalAttribute(std::string("fnv1a-64 58ac462f1a79636e")));
  Dataset other = example();
  other.quantities[0].values[1] = 0.25;
  EXPECT_NE(variables_of(other).attributes.back(), all.attributes.back());
}

TEST(Variables, ADimensionHasOneSize) {
  Dataset d = example();
  d.add("q", "overlaps", {{"feature", 2}}, {1, 2});
  EXPECT_THROW(variables_of(d), Error);
}

}  // namespace
}  // namespace headflow::variables_test
