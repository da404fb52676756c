#pragma once

// Where heads are, as a user sees it: the one place where points become arrays of a Dataset.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/problem.h"
#include "sgd/state.h"
#include "study/dataset.h"

namespace headflow {

/// m_hf = k_h . k*_f (not in the frame), R, q = k_h . k_h', and blocks of the activation.
struct Overlaps {
  Matrix m, R, q;
  Blocks blocks;
};
Overlaps overlaps_of(const Problem& problem, const Point& in_frame);
Overlaps overlaps_of(const SgdState& state);

enum class Part {
  m,
  R,
  q,
  r,       ///< the symmetric root of R R^T
  R_norm,  ///< of each head
  blocks,
};

/// Which parts become quantities, and their names: prefix + "m" + suffix.
struct OverlapNames {
  std::vector<Part> parts;
  std::string prefix = {}, suffix = {};
  std::string where = {};  ///< after the meaning, which is then in short: "overlaps at the end"
};

/// One quantity for each part, over the entries of the leading dimensions in their order; `at` may
/// give nothing for an entry: its numbers are unknown.
void add_overlaps(Dataset& out, const Problem& problem, const Dimensions& leading,
                  const OverlapNames& names,
                  const std::function<std::optional<Overlaps>(std::size_t entry)>& at);
/// The same for one point in the frame, or for all of them, one entry each.
void add_point(Dataset& out, const Problem& problem, const OverlapNames& names, const Point& point);
void add_points(Dataset& out, const Problem& problem, const Dimension& along,
                const OverlapNames& names, const std::vector<Point>& points);

/// The coordinate tau, and the overlaps of the hidden directions, of each entry of the leading
/// dimension if there is one.
void add_time(Dataset& out, std::vector<double> times);
void add_p(Dataset& out, const Matrix& p);
void add_p(Dataset& out, const Dimension& along, const std::vector<Matrix>& p);

/// Numbers of a matrix, rows first.
std::vector<double> flattened(const Matrix& matrix);

}  // namespace headflow
