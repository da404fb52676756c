#include "verify/claim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace headflow {
namespace {

#ifdef HEADFLOW_SANITIZE
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

Row measured(Prediction predicted, double value, double error, double slack = 0) {
  Row row{"X", "a statement", "", predicted};
  row.measured = value;
  row.error = error;
  row.slack = slack;
  return row;
}

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
  const std::vector<Claim> all = paper_claims();
  for (const Claim& claim : select_claims(all, {"III.4"})) {
    EXPECT_NE(claim.id.find("III.4"), std::string::npos);
  }
  EXPECT_EQ(select_claims(all, {}).size(), all.size());
  EXPECT_EQ(select_claims(all, {"lemma a.1"}).size(), 1u);
  EXPECT_GT(select_claims(all, {"Lemma III.1", "A.3"}).size(), 2u);
  EXPECT_THROW(select_claims(all, {"V.1"}), Error);
  EXPECT_THROW(select_claims(all, {""}), Error);
}

std::vector<Claim> cheap_claims() {
  std::vector<Claim> out;
  for (const Claim& claim : paper_claims()) {
    if (claim.cost <= 2) out.push_back(claim);
  }
  return out;
}

// Every row is as expected, the same bits on one core and on two. (The test `verify` runs all.)
TEST(Verify, CheapStatements) {
  if (kSanitized) GTEST_SKIP() << "the same code, for minutes";
  const std::vector<Row> rows = verify(cheap_claims(), 2);
  EXPECT_GT(rows.size(), 300u);
  for (const Row& row : rows) {
    EXPECT_TRUE(row.as_expected())
        << row.id << ": " << row.statement << "; " << row.setting << ": " << row.measured << " +- "
        << row.error << ", predicted " << row.predicted.value;
    EXPECT_FALSE(row.error_kind.empty()) << row.id;
    EXPECT_FALSE(row.setting.empty()) << row.id;
  }
  const std::vector<Claim> some = select_claims(paper_claims(), {"A.5", "A.6"});
  const std::vector<Row> one = verify(some, 1), two = verify(some, 2);
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].measured, two[i].measured);
}

// A wrong prediction comes out as such, for every row that can be wrong: each is shifted by twice
// what would be allowed and by at least a thousandth.
TEST(Verify, WrongPredictionsFail) {
  const std::vector<std::string> some = kSanitized
                                            ? std::vector<std::string>{"A.4"}
                                            : std::vector<std::string>{"A.4", "A.5", "Erratum"};
  const std::vector<Row> rows = verify(select_claims(paper_claims(), some), 1);
  ASSERT_GT(rows.size(), kSanitized ? 20u : 100u);
  for (Row row : rows) {
    if (row.predicted.relation == Relation::equals) {
      const double allowed = row.slack + kErrors * row.error;
      row.predicted.value += 2 * allowed + 1e-3 * std::abs(row.predicted.value);
    } else {
      row.predicted.relation =
          row.predicted.relation == Relation::at_least ? Relation::at_most : Relation::at_least;
    }
    EXPECT_EQ(row.verdict(), Verdict::fails) << row.id << ": " << row.statement;
    EXPECT_FALSE(row.as_expected());
  }
}

}  // namespace
}  // namespace headflow
