#include "verify/compute_verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "study/keys.h"

namespace headflow {
namespace {

/// One column of the table of statements.
template <class Value>
std::vector<double> numbers(const std::vector<Row>& rows, const Value& value) {
  std::vector<double> out;
  for (const Row& row : rows) out.push_back(value(row));
  return out;
}

template <class Value>
std::vector<std::string> words(const std::vector<Row>& rows, const Value& value) {
  std::vector<std::string> out;
  for (const Row& row : rows) out.emplace_back(value(row));
  return out;
}

std::int64_t number_of(const std::vector<Row>& rows, Verdict verdict) {
  return std::ranges::count_if(rows, [&](const Row& row) { return row.verdict() == verdict; });
}

}  // namespace

Dataset compute_verify(const Config& config, const Context& context,
                       const std::shared_ptr<const KnownTasks>& known) {
  const Effort effort = config.verify.effort;
  const auto& only = config.verify.only;
  if (only && only->empty()) {
    throw OptionError("verify.only", "[]", "must name a statement; leave it out for all of them");
  }
  const std::vector<Claim> claims =
      select_claims(paper_claims(effort, known), only.value_or(std::vector<std::string>{}));
  const auto begin = std::chrono::steady_clock::now();
  const Measurements measured = verify(claims, context);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  Dataset out = statements_dataset(measured, effort, taken.count());
  out.provenance.configuration = config_text(config, {"verify"});
  return out;
}

Dataset statements_dataset(const Measurements& measured, Effort effort, double seconds) {
  const std::vector<Row>& rows = measured.rows;
  Dataset out{"headflow-verify", "headflow: statements of the paper, measured", {}, {}, {}};
  out.tables = {{"row", "rows"}};
  const Dimensions row = {{"row", rows.size()}};
  const auto text = [&](const char* name, const char* meaning, const auto& value) {
    if (!rows.empty()) out.add_texts(name, meaning, row, words(rows, value));
  };
  const auto number = [&](const char* name, const char* meaning, const auto& value) -> Quantity& {
    return out.add(name, meaning, row, numbers(rows, value));
  };
  text("id", "name of the statement", [](const Row& r) { return r.id; });
  text("statement", "the statement, in one line", [](const Row& r) { return r.statement; });
  text("setting", "where it was measured", [](const Row& r) { return r.setting; });
  text("relation", "of what is measured to what is predicted",
       [](const Row& r) { return to_string(r.predicted.relation); });
  number("predicted", "prediction, corrected where the paper is misprinted",
         [](const Row& r) { return r.predicted.value; });
  number("measured", "measurement", [](const Row& r) { return r.measured; });
  number("error", "error of the measurement", [](const Row& r) { return r.error; });
  text("error_kind", "kind of that error", [](const Row& r) { return to_string(r.error_kind); });
  number("slack", "how far from equal an approximate statement may be",
         [](const Row& r) { return r.slack; });
  number("smallest_wrong", "the smallest wrong value that a reader would care about",
         [](const Row& r) { return r.smallest_wrong.value_or(std::nan("")); });
  number("rejects_wrong", "1 if the measurement rejects it", [](const Row& r) {
    return r.rejects_wrong() ? 1.0 : 0.0;
  }).whole_numbers();
  text("verdict", "what the measurement says", [](const Row& r) { return to_string(r.verdict()); });
  text("expected", "what is expected of it", [](const Row& r) { return to_string(r.expected()); });
  number("printed", "what the paper prints, where that is something else",
         [](const Row& r) { return r.printed ? r.printed->value : std::nan(""); });
  text("printed_relation", "its relation",
       [](const Row& r) { return r.printed ? to_string(r.printed->relation) : ""; });
  out.set("holds", number_of(rows, Verdict::holds));
  out.set("holds_as_corrected", number_of(rows, Verdict::corrected));
  out.set("fails", number_of(rows, Verdict::fails));
  out.set("not_as_expected",
          std::int64_t{std::ranges::count_if(rows, [](const Row& r) { return !r.as_expected(); })});
  out.set("effort", std::string(to_string(effort)));
  out.set("outcome", std::string(to_string(measured.outcome)));
  out.set("seconds", seconds);
  return out;
}

}  // namespace headflow
