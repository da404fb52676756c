#include "verify/claim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "verify/statistics.h"

namespace headflow::claim_test {
namespace {

Row measured(Prediction predicted, double value, double error, double slack = 0) {
  Row row{"X", "a statement", "", predicted};
  row.measured = value;
  row.error = error;
  row.slack = slack;
  row.smallest_wrong = predicted.value + 1;
  return row;
}

std::vector<Claim> all_claims() { return paper_claims(Effort::quick); }

TEST(Verify, Verdicts) {
  EXPECT_EQ(measured({1}, 1.03, 0.01).verdict(), Verdict::holds);
  EXPECT_EQ(measured({1}, 1.05, 0.01).verdict(), Verdict::fails);
  EXPECT_EQ(measured({1}, 1.05, 0.01, 0.02).verdict(), Verdict::holds);
  EXPECT_EQ(measured({1}, std::nan(""), 0.01).verdict(), Verdict::fails);
  // An inequality has to be true beyond doubt.
  EXPECT_EQ(measured({1, Relation::at_least}, 1.03, 0.01).verdict(), Verdict::fails);
  EXPECT_EQ(measured({1, Relation::at_least}, 1.05, 0.01).verdict(), Verdict::holds);
  EXPECT_EQ(measured({1, Relation::at_most}, 0.97, 0.01).verdict(), Verdict::fails);
  EXPECT_EQ(measured({1, Relation::at_most}, 0.95, 0.01).verdict(), Verdict::holds);
}

TEST(Verify, Misprints) {
  Row row = measured({1}, 1.0, 0.01);
  row.printed = Prediction{2};
  EXPECT_EQ(row.verdict(), Verdict::corrected);
  EXPECT_TRUE(row.as_expected());
  row.printed = Prediction{1.02};  // not told from what is measured: no misprint is shown
  EXPECT_EQ(row.verdict(), Verdict::holds);
  EXPECT_FALSE(row.as_expected());
  row.predicted = {3};
  EXPECT_EQ(row.verdict(), Verdict::fails);
  EXPECT_FALSE(row.as_expected());
  row.expected_instead = Verdict::fails;
  EXPECT_TRUE(row.as_expected());
}

TEST(Verify, SelectsByWords) {
  const std::vector<Claim> all = all_claims();
  for (const Claim& claim : select_claims(all, {"III.4"})) {
    EXPECT_NE(claim.id.find("III.4"), std::string::npos);
  }
  EXPECT_EQ(select_claims(all, {}).size(), all.size());
  EXPECT_EQ(select_claims(all, {"lemma a.1"}).size(), 3u);
  EXPECT_GT(select_claims(all, {"Lemma III.1", "A.3"}).size(), 2u);
  EXPECT_THROW(select_claims(all, {"V.1"}), Error);
  EXPECT_THROW(select_claims(all, {""}), Error);
}

// A row that accepts what a reader would call wrong could not fail, and is not as expected.
TEST(Verify, RowsThatCannotFail) {
  Row row = measured({1}, 1.0, 0.01);
  EXPECT_TRUE(row.rejects_wrong());
  row.smallest_wrong = 1.03;
  EXPECT_EQ(row.verdict(), Verdict::holds);
  EXPECT_FALSE(row.as_expected());
  // On the other side, too: 0.94 would be accepted with 0.97.
  row.measured = 0.97;
  row.smallest_wrong = 1.06;
  EXPECT_FALSE(row.as_expected());
  row.smallest_wrong.reset();
  EXPECT_FALSE(row.as_expected());
  // An inequality: "at least 1" that also holds with "at least 1000" says nothing.
  row = measured({1, Relation::at_least}, 5, 0.1);
  row.smallest_wrong = 10;
  EXPECT_TRUE(row.as_expected());
  row.measured = 1e300;
  EXPECT_FALSE(row.as_expected());
  row = measured({0.02, Relation::at_most}, 0.0009, 0.0001);
  row.smallest_wrong = 0.0005;
  EXPECT_TRUE(row.as_expected());
  row.smallest_wrong = 0.002;
  EXPECT_FALSE(row.as_expected());
}

TEST(Verify, Efforts) {
  EXPECT_EQ(from_name<Effort>("verify.effort", "quick"), Effort::quick);
  EXPECT_EQ(from_name<Effort>("verify.effort", "full"), Effort::full);
  EXPECT_THROW(from_name<Effort>("verify.effort", "fast"), OptionError);
  // The same statements with either effort.
  std::set<std::string> ids[2];
  for (const Claim& claim : paper_claims(Effort::quick)) ids[0].insert(claim.id);
  for (const Claim& claim : paper_claims(Effort::full)) ids[1].insert(claim.id);
  EXPECT_EQ(ids[0], ids[1]);
}

// What the program's `verify` checks of every row is checked here of those that cost little: each
// names a smallest wrong value, and with it in place of the prediction it fails.
TEST(Verify, WrongPredictionsFail) {
  const std::vector<Claim> some = select_claims(
      all_claims(), {"Lemma A.4", "Lemma III.1 softmax", "Erratum 3", "Extension 1", "Remark 2"});
  const std::vector<Row> rows = verify(some, Context::threads(2)).rows;
  ASSERT_GT(rows.size(), 60u);
  for (Row row : rows) {
    const auto where = row.id + ": " + row.statement + "; " + row.setting;
    EXPECT_TRUE(row.as_expected()) << where << ": " << row.measured << " +- " << row.error
                                   << ", predicted " << row.predicted.value;
    EXPECT_FALSE(row.setting.empty()) << where;
    ASSERT_TRUE(row.smallest_wrong.has_value()) << where;
    row.predicted.value = *row.smallest_wrong;
    EXPECT_EQ(row.verdict(), Verdict::fails) << where;
  }
  const std::vector<Row> again = verify(some).rows;
  ASSERT_EQ(rows.size(), again.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].measured, again[i].measured);
}

/// A claim of one row, after `body`.
Claim claim_of(const char* id, double cost, const std::function<void(const Context&)>& body) {
  return {id, "", cost, [=](const Context& context) {
            body(context);
            return std::vector<Row>{{id}};
          }};
}

// Even if the wish is to stop at the end of a step: a claim has none.
TEST(Verify, AStoppedClaimLeavesNoRow) {
  bool begun = false;
  const auto nothing = [](const Context&) {};
  const auto for_ever = [&](const Context& context) {
    for (begun = true;;) context.check();
  };
  const auto short_of_its_end = [&](const Context& context) {
    for (begun = true; context.goes_on();) {
    }
  };
  for (const std::function<void(const Context&)>& stopped :
       {std::function<void(const Context&)>(for_ever),
        std::function<void(const Context&)>(short_of_its_end)}) {
    begun = false;
    const std::vector<Claim> claims = {claim_of("not begun", 1, nothing),
                                       claim_of("stopped", 2, stopped),
                                       claim_of("finished", 3, nothing)};
    const Measurements found = verify(claims, Context::until([&] { return begun; }));
    EXPECT_EQ(found.outcome, VerifyOutcome::interrupted);
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_EQ(found.rows[0].id, "finished");
  }
  const Measurements whole =
      verify({claim_of("finished", 1, nothing)}, Context::until([] { return false; }));
  EXPECT_EQ(whole.outcome, VerifyOutcome::finished);
  EXPECT_EQ(whole.rows.size(), 1u);
  // What nobody asked for is an error of the claim.
  EXPECT_THROW(verify({claim_of("ends itself", 1, [](const Context&) { throw Interrupted(); })}),
               Interrupted);
}

TEST(Verify, OnlyWholeClaimsAreToldOf) {
  class Told final : public Observer {
   public:
    void status(const Status& now) override { what.emplace_back(now.what); }
    void note(std::string_view text) override { what.emplace_back(text); }
    std::vector<std::string> what;
  };
  const auto told = std::make_shared<Told>();
  verify({claim_of("first", 2,
                   [](const Context& context) {
                     EXPECT_EQ(context.executor->workers(), 1);
                     context.status({.what = "a step of it"});
                     context.note("a remark");
                   })},
         {thread_executor(2), told});
  EXPECT_EQ(told->what, std::vector<std::string>{"first"});
}

// A measurement that takes long is stopped wherever it is.
TEST(Verify, StatementsAreStoppedFromWithin) {
  for (const char* id : {"III.2", "III.4", "A.1", "Claim order", "Spare heads"}) {
    int asked = 0;
    const Measurements found =
        verify(select_claims(all_claims(), {id}), Context::until([&] { return ++asked > 50; }));
    EXPECT_EQ(found.outcome, VerifyOutcome::interrupted) << id;
    EXPECT_TRUE(found.rows.empty()) << id;
  }
}

// Lines through points with errors: y = 2 x with errors that are right, and with scatter that they
// do not account for.
TEST(Verify, Slopes) {
  const std::vector<double> x = {0, 1, 2, 3};
  const Measured line = slope_of(x, std::vector<Measured>{{0, 0.1}, {2, 0.1}, {4, 0.1}, {6, 0.1}});
  EXPECT_DOUBLE_EQ(line.value, 2);
  EXPECT_NEAR(line.error, 0.1 / std::sqrt(5.0), 1e-12);
  const Measured rough = slope_of(x, std::vector<Measured>{{0, 0.1}, {4, 0.1}, {2, 0.1}, {6, 0.1}});
  EXPECT_GT(rough.error, 5 * line.error);
  const Measured mean = mean_of(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(mean.value, 2);
  EXPECT_NEAR(mean.error, 1 / std::sqrt(3.0), 1e-12);
}

}  // namespace
}  // namespace headflow::claim_test
