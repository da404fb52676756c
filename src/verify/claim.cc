#include "verify/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <mutex>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {
namespace {

/// Lower-case words without brackets, commas and final dots: "Prop. IV.2 (x)" -> prop, iv.2, x.
std::vector<std::string> words(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    const bool separates = std::string_view("()[],;:").find(c) != std::string_view::npos;
    plain += separates ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::istringstream stream(plain);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) {
    while (word.ends_with('.')) word.pop_back();
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

/// Of a claim there is nothing to tell but that it is measured. It has no steps after which to
/// stop: whatever the wish, it ends from within, and what it gives then is not to be trusted.
class OfClaim final : public Observer {
 public:
  explicit OfClaim(const Context& outer) : latch_(outer) {}
  Wish wish() const override { return latch_.goes_on() ? Wish::go_on : Wish::stop_now; }
  bool stopped() const { return latch_.stopped(); }

 private:
  mutable StopLatch latch_;
};

}  // namespace

bool agrees(const Prediction& prediction, const Row& row) {
  const double above = row.measured - prediction.value, reach = kErrors * row.error;
  switch (prediction.relation) {
    case Relation::equals: return std::abs(above) <= row.slack + reach;
    case Relation::at_most: return above + reach <= 0;
    case Relation::at_least: return above - reach >= 0;
  }
  return false;
}

Verdict Row::verdict() const {
  if (!agrees(predicted, *this)) return Verdict::fails;
  return printed && !agrees(*printed, *this) ? Verdict::corrected : Verdict::holds;
}

bool Row::rejects_wrong() const {
  if (!smallest_wrong || !std::isfinite(*smallest_wrong) || !std::isfinite(measured)) return false;
  if (agrees({*smallest_wrong, predicted.relation}, *this)) return false;
  if (predicted.relation != Relation::equals) return true;
  return !agrees({2 * predicted.value - *smallest_wrong, Relation::equals}, *this);
}

Verdict Row::expected() const {
  if (expected_instead) return *expected_instead;
  return printed ? Verdict::corrected : Verdict::holds;
}

std::vector<Claim> paper_claims(Effort effort, const std::shared_ptr<const KnownTasks>& known) {
  std::vector<Claim> out;
  const auto add = [&](std::vector<Claim> part) {
    std::ranges::move(part, std::back_inserter(out));
  };
  for (const auto part :
       {loss_claims, manifold_claims, limit_claims, unspecialised_claims, parting_claims,
        hessian_claims, specialisation_claims, bayes_claims, expressivity_claims}) {
    add(part(effort));
  }
  add(training_claims(effort, known));
  add(spare_heads_claims(effort, known));
  for (const auto part : {words_claims, errata_claims, extension_claims, spare_memory_claims}) {
    add(part(effort));
  }
  return out;
}

std::vector<Claim> select_claims(const std::vector<Claim>& claims,
                                 const std::vector<std::string>& wanted) {
  if (wanted.empty()) return claims;
  std::vector<char> chosen(claims.size(), 0);
  for (const std::string& text : wanted) {
    const std::vector<std::string> asked = words(text);
    bool found = false;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const std::vector<std::string> has = words(claims[i].id + " " + claims[i].also);
      const bool all = !asked.empty() && std::ranges::all_of(asked, [&](const std::string& word) {
        return std::ranges::find(has, word) != has.end();
      });
      if (all) chosen[i] = found = true;
    }
    if (!found) {
      std::string ids, last;
      for (const Claim& claim : claims) {
        if (claim.id == last) continue;
        last = claim.id;
        ids += "\n  " + last;
      }
      throw OptionError("verify.only", in_quotes(text),
                        fmt::format("is no statement; there are:{}", ids));
    }
  }
  std::vector<Claim> out;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (chosen[i]) out.push_back(claims[i]);
  }
  return out;
}

Measurements verify(const std::vector<Claim>& claims, const Context& context) {
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return claims[a].cost > claims[b].cost; });
  double total = 0;
  for (const Claim& claim : claims) total += claim.cost;

  std::vector<std::vector<Row>> rows(claims.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  double done = 0;
  std::size_t count = 0;
  const auto queues = static_cast<std::size_t>(context.executor->workers());
  context.executor->run(queues, [&](std::size_t /*queue*/, int /*worker*/) {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= order.size()) return;
      const Claim& claim = claims[order[i]];
      const auto watched = std::make_shared<OfClaim>(context);
      std::vector<Row> found;
      try {
        found = claim.measure({serial_executor(), watched});
      } catch (const Interrupted&) {
        if (!watched->stopped()) throw;
      }
      if (watched->stopped()) {
        stop = true;
        return;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      rows[order[i]] = std::move(found);
      done += claim.cost;
      ++count;
      context.status({.fraction = done / total,
                      .count = static_cast<double>(count),
                      .total = static_cast<double>(claims.size()),
                      .unit = "statements",
                      .what = claim.id});
      if (!context.goes_on()) stop = true;
    }
  });
  Measurements out;
  if (count < claims.size()) out.outcome = VerifyOutcome::interrupted;
  for (std::vector<Row>& some : rows) {
    std::move(some.begin(), some.end(), std::back_inserter(out.rows));
  }
  return out;
}

}  // namespace headflow
