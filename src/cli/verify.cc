#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/command.h"
#include "cli/watch.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/result_json.h"
#include "study/compute.h"

namespace headflow::cli {
namespace {

/// How close a row is to failing: 1 is the limit.
double strain(const Row& row) {
  const double reach = kErrors * row.error, off = row.measured - row.predicted.value;
  switch (row.predicted.relation) {
    case Relation::equals: return std::abs(off) / std::max(row.slack + reach, 1e-300);
    case Relation::at_most: return (row.measured + reach) / std::max(row.predicted.value, 1e-300);
    case Relation::at_least: return reach / std::max(off, 1e-300);
  }
  return 0;
}

std::string number(double x) {
  return x != 0 && (std::abs(x) < 1e-3 || std::abs(x) >= 1e5) ? fmt::format("{:.3e}", x)
                                                              : fmt::format("{:.6g}", x);
}

/// Rows of one statement as one entry: that which comes closest to failing.
void print_statement(const std::vector<const Row*>& rows) {
  const Row& worst = **std::max_element(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
    return std::pair(!a->as_expected(), strain(*a)) < std::pair(!b->as_expected(), strain(*b));
  });
  std::string predicted =
      fmt::format("{} {}", to_string(worst.predicted.relation), number(worst.predicted.value));
  if (worst.printed) {
    predicted += fmt::format(" (printed {} {})", to_string(worst.printed->relation),
                             number(worst.printed->value));
  }
  if (worst.slack > worst.error && worst.predicted.relation == Relation::equals) {
    predicted += fmt::format(", slack {:.2g}", worst.slack);
  }
  fmt::print("{:<30} {:<18} {} +- {:.1e}, predicted {}{}\n", worst.id, to_string(worst.verdict()),
             number(worst.measured), worst.error, predicted,
             worst.as_expected()     ? ""
             : worst.rejects_wrong() ? "  NOT AS EXPECTED"
                                     : "  NOT AS EXPECTED: too uncertain to reject a wrong value");
  fmt::print("  {}\n  {}{}\n", worst.statement, worst.setting,
             rows.size() > 1 ? fmt::format(" (the worst of {} settings)", rows.size()) : "");
}

/// What the computing threads and the waiting one share.
struct Statements {
  Statements(std::size_t count, bool quiet)
      : rows(count), watch(std::make_shared<Watch>("verify", quiet)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<Row>> rows;  ///< of each claim that is measured
  bool finished = false;
  std::exception_ptr failed;
  std::shared_ptr<Watch> watch;
};

/// Statements take up to a minute, but Ctrl-C must not: they are measured in another thread, which
/// an interrupt leaves behind.
std::vector<Row> measured_rows(std::vector<Claim> claims, int threads, bool quiet) {
  const auto shared = std::make_shared<Statements>(claims.size(), quiet);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].measure = [shared, i, measure = claims[i].measure] {
      std::vector<Row> rows = measure();
      const std::lock_guard<std::mutex> lock(shared->mutex);
      return shared->rows[i] = std::move(rows);
    };
  }
  std::thread([shared, claims, threads] {
    try {
      verify(claims, {thread_executor(threads), shared->watch});
    } catch (...) {
      const std::lock_guard<std::mutex> lock(shared->mutex);
      shared->failed = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->finished = true;
    shared->changed.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->finished && !interrupted()) {
    shared->changed.wait_for(lock, std::chrono::milliseconds(100));
  }
  if (shared->failed) std::rethrow_exception(shared->failed);
  shared->watch->finish();
  std::vector<Row> out;
  for (const std::vector<Row>& some : shared->rows) out.insert(out.end(), some.begin(), some.end());
  return out;
}

int run_verify(Invocation& call) {
  const std::vector<Claim> claims =
      select_claims(paper_claims(call.config.verify.effort), call.only);
  if (!call.config.result.output.empty()) check_writable(call.config.result.output);
  catch_interrupts();
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Row> rows = measured_rows(claims, call.config.program.threads, call.quiet);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Dataset result = statements_dataset(rows, call.config.verify.effort, seconds);
  result.provenance.configuration = config_text(call.config, {"verify"});
  result.provenance.command = call.command_line;
  const std::int64_t unexpected = result.count("not_as_expected");
  if (!call.config.result.output.empty() && !interrupted()) {
    write_atomically(call.config.result.output, json_text(result) + '\n');
  }
  if (call.json) {
    fmt::print("{}\n", json_text(result));
  } else {
    // Settings of one statement together, in order of appearance.
    std::vector<std::vector<const Row*>> statements;
    for (const Row& row : rows) {
      const auto same = std::ranges::find_if(statements, [&](const auto& rows_of) {
        return rows_of[0]->id == row.id && rows_of[0]->statement == row.statement;
      });
      if (same != statements.end()) {
        same->push_back(&row);
      } else {
        statements.push_back({&row});
      }
    }
    for (const auto& rows_of : statements) print_statement(rows_of);
    fmt::print("\n{} rows: {} hold, {} hold as corrected, {} fail; {}\n", rows.size(),
               result.count("holds"), result.count("holds_as_corrected"), result.count("fails"),
               unexpected == 0 ? "all as expected" : fmt::format("{} NOT AS EXPECTED", unexpected));
  }
  if (interrupted()) {
    fmt::print(stderr, "interrupted: these are the statements measured so far\n");
    std::fflush(stdout);
    std::_Exit(kInterrupted);  // threads may still be computing
  }
  return unexpected == 0 ? kSuccess : kNotAsExpected;
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
      "Only these statements, as in --only III.4,A.1 or --only 'Erratum 4'",
      run_verify};
  return command;
}

}  // namespace headflow::cli
