#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/watch.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/result_json.h"
#include "sweep/known_results.h"
#include "verify/compute_verify.h"

namespace headflow::cli {
namespace {

/// One row of a result.
struct Shown {
  const Dataset& result;
  std::size_t row;

  double number(const char* name) const { return result[name].values[row]; }
  const std::string& text(const char* name) const { return result[name].texts[row]; }
  bool rejects_wrong() const { return number("rejects_wrong") != 0; }
  bool as_expected() const { return text("verdict") == text("expected") && rejects_wrong(); }
  bool same_statement(const Shown& other) const {
    return text("id") == other.text("id") && text("statement") == other.text("statement");
  }
  bool equality() const { return text("relation") == to_string(Relation::equals); }

  /// How close it is to failing: 1 is the limit.
  double strain() const {
    const double reach = kErrors * number("error"), predicted = number("predicted");
    const double off = number("measured") - predicted;
    if (equality()) return std::abs(off) / std::max(number("slack") + reach, 1e-300);
    return text("relation") == to_string(Relation::at_most)
               ? (number("measured") + reach) / std::max(predicted, 1e-300)
               : reach / std::max(off, 1e-300);
  }
};

std::string number_text(double x) {
  return x != 0 && (std::abs(x) < 1e-3 || std::abs(x) >= 1e5) ? fmt::format("{:.3e}", x)
                                                              : fmt::format("{:.6g}", x);
}

/// Rows of one statement as one entry: that which comes closest to failing.
void print_statement(const std::vector<Shown>& rows) {
  const Shown& worst = *std::ranges::max_element(
      rows, {}, [](const Shown& row) { return std::pair(!row.as_expected(), row.strain()); });
  std::string predicted =
      fmt::format("{} {}", worst.text("relation"), number_text(worst.number("predicted")));
  if (!worst.text("printed_relation").empty()) {
    predicted += fmt::format(" (printed {} {})", worst.text("printed_relation"),
                             number_text(worst.number("printed")));
  }
  if (worst.number("slack") > worst.number("error") && worst.equality()) {
    predicted += fmt::format(", slack {:.2g}", worst.number("slack"));
  }
  fmt::print("{:<30} {:<18} {} +- {:.1e}, predicted {}{}\n", worst.text("id"),
             worst.text("verdict"), number_text(worst.number("measured")), worst.number("error"),
             predicted,
             worst.as_expected()     ? ""
             : worst.rejects_wrong() ? "  NOT AS EXPECTED"
                                     : "  NOT AS EXPECTED: too uncertain to reject a wrong value");
  fmt::print("  {}\n  {}{}\n", worst.text("statement"), worst.text("setting"),
             rows.size() > 1 ? fmt::format(" (the worst of {} settings)", rows.size()) : "");
}

void print_statements(const Dataset& result) {
  const std::size_t rows = result["measured"].values.size();
  // Settings of one statement together, in order of appearance.
  std::vector<std::vector<Shown>> statements;
  for (std::size_t i = 0; i < rows; ++i) {
    const Shown row{result, i};
    const auto same = std::ranges::find_if(
        statements, [&](const auto& rows_of) { return rows_of[0].same_statement(row); });
    if (same != statements.end()) {
      same->push_back(row);
    } else {
      statements.push_back({row});
    }
  }
  for (const auto& rows_of : statements) print_statement(rows_of);
  const std::int64_t unexpected = result.count("not_as_expected");
  fmt::print("\n{} rows: {} hold, {} hold as corrected, {} fail; {}\n", rows, result.count("holds"),
             result.count("holds_as_corrected"), result.count("fails"),
             unexpected == 0 ? "all as expected" : fmt::format("{} NOT AS EXPECTED", unexpected));
}

int run_verify(Invocation& call) {
  const std::string& output = call.config.result.output;
  if (!output.empty()) check_writable(output);
  catch_interrupts();
  const Watched watched(call, "verify");
  const std::optional<std::string>& results = call.config.verify.results;
  const auto known = results ? std::make_shared<const KnownResults>(*results) : nullptr;
  Dataset result = compute_verify(call.config, watched, known);
  if (known) watched->note(fmt::format("{} tasks were taken from {}", known->found(), *results));
  result.provenance.command = call.command_line;
  const bool whole = result.text("outcome") == to_string(VerifyOutcome::finished);
  if (!output.empty() && whole) write_atomically(output, json_text(result) + '\n');
  if (call.json) {
    fmt::print("{}\n", json_text(result));
  } else {
    print_statements(result);
  }
  if (!whole) {
    fmt::print(stderr, "interrupted: these are the statements measured so far\n");
    return kInterrupted;
  }
  return result.count("not_as_expected") == 0 ? kSuccess : kNotAsExpected;
}

}  // namespace

const Command& verify_command() {
  static const Command command{
      "verify",
      "measure every statement of the paper",
      "Measures the propositions, lemmas and claims of the paper (version 1) and its errata, each\n"
      "against a prediction: measured +- error, and whether it holds, holds as corrected (what is\n"
      "printed does not) or fails. docs/theory.md says how each is measured. The table shows for "
      "each\n"
      "statement the setting that comes closest to failing; --json has all of them. An equality\n"
      "holds within four errors (and a stated slack where the statement is approximate), an\n"
      "inequality if it is true by four errors. Each row names the smallest wrong value that a\n"
      "reader would care about, and has to reject it. Exit code 0 only if every row is as\n"
      "expected. --effort quick measures the same with fewer runs, samples and starts.\n\n"
      "examples:\n"
      "  headflow verify\n"
      "  headflow verify --effort quick\n"
      "  headflow verify --only III.4\n"
      "  headflow verify --only 'Lemma A.4' --json\n",
      {"verify", "result.output", "program"},
      false,
      nullptr,
      run_verify};
  return command;
}

}  // namespace headflow::cli
