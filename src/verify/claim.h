#pragma once

// The paper's statements as measurements. A claim measures one statement, in one or more settings;
// each is a row with what was predicted, what was measured, its error, and the verdict.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/context.h"
#include "core/effort.h"
#include "core/error_kind.h"
#include "study/known_tasks.h"

namespace headflow {

enum class Relation { equals, at_most, at_least };
template <>
inline constexpr Named<Relation> kNames<Relation>[] = {
    {Relation::equals, "="}, {Relation::at_most, "<="}, {Relation::at_least, ">="}};

struct Prediction {
  double value = 0;
  Relation relation = Relation::equals;
};

enum class Verdict {
  holds,      ///< as the paper prints it
  corrected,  ///< as corrected; what is printed does not hold
  fails,
};
template <>
inline constexpr Named<Verdict> kNames<Verdict>[] = {{Verdict::holds, "holds"},
                                                     {Verdict::corrected, "holds as corrected"},
                                                     {Verdict::fails, "fails"}};

struct Row {
  std::string id = {};  ///< "Prop. III.4": rows with the same id are settings of one statement
  std::string statement = {};              ///< in one line
  std::string setting = {};                ///< where it was measured
  Prediction predicted = {};               ///< corrected where the paper is misprinted
  std::optional<Prediction> printed = {};  ///< what the paper says, if that is something else
  double measured = 0, error = 0;
  ErrorKind error_kind = ErrorKind::refinement;
  double slack = 0;  ///< how far from equal an approximate statement may be
  std::optional<Verdict> expected_instead = {};  ///< of a statement that is known to fail
  /// The smallest wrong value that a reader would care about. The measurement must reject it in
  /// place of the prediction (of an equality, on either side): else the row could not fail.
  std::optional<double> smallest_wrong = {};

  Verdict verdict() const;
  bool rejects_wrong() const;
  /// Holds, or holds as corrected if something else is printed; unless told otherwise.
  Verdict expected() const;
  bool as_expected() const { return verdict() == expected() && rejects_wrong(); }
};

/// An equality holds within `slack` and four errors; an inequality only if it is true by four
/// errors. With normal errors a true equality is rejected once in 16,000 rows.
bool agrees(const Prediction& prediction, const Row& row);
inline constexpr double kErrors = 4;

struct Claim {
  std::string id;       ///< common to its rows, or the beginning of their ids
  std::string summary;  ///< for progress
  double cost = 1;      ///< about, in seconds of one core: for the order and the progress
  /// On one core. Throws Interrupted if it is told to stop, as half a measurement is none.
  std::function<std::vector<Row>(const Context&)> measure;
  std::string also = {};  ///< more words to find it by
};

/// Everything the paper says, in its order. Tasks that figures compute, too, are taken from
/// `known`.
std::vector<Claim> paper_claims(Effort effort, const std::shared_ptr<const KnownTasks>& known = {});
// Its parts, one file each.
std::vector<Claim> loss_claims(Effort effort);            // III.1, A.4
std::vector<Claim> manifold_claims(Effort effort);        // A.1 to A.3
std::vector<Claim> limit_claims(Effort effort);           // III.2
std::vector<Claim> unspecialised_claims(Effort effort);   // III.3
std::vector<Claim> parting_claims(Effort effort);         // III.4
std::vector<Claim> hessian_claims(Effort effort);         // lemma III.1 = A.5
std::vector<Claim> specialisation_claims(Effort effort);  // lemma III.2 = A.6
std::vector<Claim> bayes_claims(Effort effort);           // IV.1, IV.2
std::vector<Claim> expressivity_claims(Effort effort);    // IV.3
std::vector<Claim> training_claims(Effort effort,         // what is said in words of training,
                                   const std::shared_ptr<const KnownTasks>& known);
std::vector<Claim> spare_heads_claims(Effort effort,  // of more heads than are needed,
                                      const std::shared_ptr<const KnownTasks>& known);
std::vector<Claim> words_claims(Effort effort);         // and what does not hold
std::vector<Claim> spare_memory_claims(Effort effort);  // ours: what spare heads remember
std::vector<Claim> errata_claims(Effort effort);        // misprints
std::vector<Claim> extension_claims(Effort effort);     // beyond what is assumed

/// Claims whose id (and `also`) has all words of one of `wanted`, in any case: "III.4", "lemma
/// III.1". Empty `wanted`: all. Throws OptionError naming the ids there are if one finds nothing.
std::vector<Claim> select_claims(const std::vector<Claim>& claims,
                                 const std::vector<std::string>& wanted);

enum class VerifyOutcome { finished, interrupted };
template <>
inline constexpr Named<VerifyOutcome> kNames<VerifyOutcome>[] = {
    {VerifyOutcome::finished, "finished"}, {VerifyOutcome::interrupted, "interrupted"}};

struct Measurements {
  VerifyOutcome outcome = VerifyOutcome::finished;
  std::vector<Row> rows;  ///< in the order of claims
};

/// Measures claims, the costly ones first; the same bits for any number of threads. The observer is
/// told the share of the work that is done and the last claim measured. If it wants to stop, claims
/// are stopped from within and leave no row; those of claims measured before are returned.
Measurements verify(const std::vector<Claim>& claims, const Context& context = {});

}  // namespace headflow
